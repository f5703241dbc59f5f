package clidoc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/internal/configfile"
)

func program() *cobra.Command {
	root := &cobra.Command{Use: "p", Long: "What p is for."}
	group := &cobra.Command{Use: "topics", Short: "Topics"}
	sub := &cobra.Command{Use: "make NAME", Short: "Make one", Run: func(*cobra.Command, []string) {}}
	sub.Flags().BoolP("dry-run", "n", false, "change nothing")
	sub.Flags().String("as", "me", "`PRINCIPAL` to be, a|b")
	var settings struct {
		Tick int `yaml:"tick"`
	}
	configfile.Bind(sub.Flags(), &settings, func(configfile.Field) string { return "how often" })
	hidden := &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}}
	group.AddCommand(sub)
	root.AddCommand(group, hidden)
	return root
}

func TestAPageHasEachCommandAndItsOwnFlags(t *testing.T) {
	page := string(Page(program()))
	for _, want := range []string{
		"# p\n\nWhat p is for.\n", "## p topics make\n\n```\np topics make NAME\n```\n\nMake one.\n",
		"| `-n, --dry-run` |  | change nothing |\n", "| `--as PRINCIPAL` | `me` | PRINCIPAL to be, a\\|b |\n", "(configuration.md)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	for _, no := range []string{"--tick", "secret", "--help"} {
		if strings.Contains(page, no) {
			t.Errorf("%q is in the page", no)
		}
	}
}

func TestAnOldPageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.md")
	if err := Current(path, program(), false); err == nil || !strings.Contains(err.Error(), "make docs") {
		t.Errorf("no page: %v", err)
	}
	if err := Current(path, program(), true); err != nil {
		t.Fatal(err)
	}
	if err := Current(path, program(), false); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Current(path, program(), false); err == nil {
		t.Error("an old page is taken for a current one")
	}
}
