package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/configfile"
)

// Configured is a command's configuration of type T: defaults, then the file of --config, then flags.
type Configured[T any] struct {
	value T
	file  string
	flags *configfile.Flags
}

// Configure adds --config and a flag for each setting to cmd.
func Configure[T any](cmd *cobra.Command, defaults T) *Configured[T] {
	c := &Configured[T]{value: defaults}
	cmd.Flags().StringVarP(&c.file, "config", "c", "", "`FILE` of settings (YAML); flags hold over it")
	cmd.Flags().SortFlags = false
	c.flags = configfile.Bind(cmd.Flags(), &c.value, usage)
	return c
}

// usage is the first sentence of a setting's documentation.
func usage(f configfile.Field) string {
	doc := config.Doc(f.Owner + "." + f.Name)
	if first, _, more := strings.Cut(doc, ". "); more {
		doc = first
	}
	doc = strings.TrimSuffix(doc, ".")
	for _, verb := range []string{" is ", " are ", ": "} {
		if rest, ok := strings.CutPrefix(doc, f.Name+verb); ok {
			return strings.ReplaceAll(rest, "`", "'")
		}
	}
	return strings.ReplaceAll(doc, "`", "'")
}

// Load reads the file, if one is named, and lets the flags hold over it.
func (c *Configured[T]) Load() (T, error) {
	if c.file != "" {
		data, err := os.ReadFile(c.file)
		if err != nil {
			return c.value, fmt.Errorf("read the configuration: %w", err)
		}
		if err := configfile.Decode(c.file, data, &c.value); err != nil {
			return c.value, fmt.Errorf("the configuration is invalid:\n%w", err)
		}
	}
	c.flags.Apply()
	return c.value, nil
}

// Source names where settings came from, for messages.
func (c *Configured[T]) Source() string {
	if c.file == "" {
		return "the command line"
	}
	return c.file
}
