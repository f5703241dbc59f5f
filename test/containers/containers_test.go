package containers

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/test/parts"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func theContainerfile(t *testing.T) containerfile {
	t.Helper()
	c, err := read(text(t, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// programs are those of cmd/.
func programs(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root(t), "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestEachProgramHasAnImage(t *testing.T) {
	c := theContainerfile(t)
	var images []string
	for _, s := range c.stages {
		if s.base != "base" {
			continue
		}
		images = append(images, s.name)
		copied := fmt.Sprintf("--from=build /src/bin/%s /%s", s.name, s.name)
		if got := s.all("COPY"); !slices.Equal(got, []string{copied}) {
			t.Errorf("%s: COPY %q, want %q", s.name, got, copied)
		}
		if got := s.all("ENTRYPOINT"); !slices.Equal(got, []string{fmt.Sprintf("[%q]", "/"+s.name)}) {
			t.Errorf("%s: ENTRYPOINT %q", s.name, got)
		}
		if got := s.all("LABEL"); len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("org.opencontainers.image.title=%q", s.name)) {
			t.Errorf("%s: LABEL %q", s.name, got)
		}
	}
	want := programs(t)
	slices.Sort(images)
	if slices.Sort(want); !slices.Equal(images, want) {
		t.Errorf("images of %q, programs %q", images, want)
	}
	if sidecar := inject.DefaultSettings().Program; sidecar != "/weir-sidecar" {
		t.Errorf("the injector runs %s", sidecar)
	}
}

// What the chart's pods run is where an image has it.
func TestTheChartRunsWhatTheImagesHave(t *testing.T) {
	command := regexp.MustCompile(`command: \[/([a-z-]+)`)
	known, n := programs(t), 0
	err := filepath.WalkDir(filepath.Join(root(t), "charts", "weir", "templates"), func(file string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(file)
		for _, m := range command.FindAllSubmatch(b, -1) {
			if n++; !slices.Contains(known, string(m[1])) {
				t.Errorf("%s runs /%s", filepath.Base(file), m[1])
			}
		}
		return err
	})
	if err != nil || n < 3 {
		t.Errorf("%d commands, %v", n, err)
	}
}

// The user is a number, the one of whom the socket's group is made.
func TestImagesRunAsTheInjectorsUser(t *testing.T) {
	base, ok := theContainerfile(t).stage("base")
	s := inject.DefaultSettings()
	want := fmt.Sprintf("%d:%d", s.User, s.Group)
	if got := base.all("USER"); !ok || !slices.Equal(got, []string{want}) {
		t.Errorf("USER %q, want %s", got, want)
	}
}

// One place has the flags: the image is what make build makes, where make build puts it.
func TestImagesAreBuiltByTheMakefile(t *testing.T) {
	build, ok := theContainerfile(t).stage("build")
	runs := build.all("RUN")
	if !ok || len(runs) != 1 || !strings.Contains(runs[0], ` GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION="$VERSION"`) {
		t.Errorf("RUN %q", runs)
	}
	if !strings.Contains(text(t, "Makefile"), " -o bin/ ./cmd/...\n") {
		t.Error("make build does not build all of cmd/ into bin/")
	}
	image := theContainerfile(t).arg("GO_IMAGE")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(text(t, "go.mod"))
	if version == nil || path.Base(image) != "golang:"+version[1] {
		t.Errorf("compiled by %s, go.mod says %v", image, version)
	}
}

// The context holds every file that the programs are made of, on each platform, and what make reads.
func TestTheContextLacksNothing(t *testing.T) {
	ignored := text(t, ".dockerignore")
	top := map[string]bool{}
	for line := range strings.Lines(ignored) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			top[name] = true
		}
	}
	needed := []string{"go.mod", "go.sum", "Makefile", "docs.mk", "LICENSE"}
	for _, arch := range []string{"amd64", "arm64"} {
		needed = append(needed, sources(t, arch)...)
	}
	for _, name := range needed {
		first, _, _ := strings.Cut(name, "/")
		if !top[first] || strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s is not in the context", name)
		}
	}
	for name := range top {
		if _, err := os.Stat(filepath.Join(root(t), name)); err != nil {
			t.Errorf(".dockerignore lets in %s: %v", name, err)
		}
	}
}

// sources are this module's files that the programs are made of.
func sources(t *testing.T, arch string) []string {
	t.Helper()
	const format = `{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}
{{end}}{{range $.EmbedFiles}}{{$.Dir}}/{{.}}
{{end}}{{end}}{{end}}`
	cmd := exec.Command("go", "list", "-deps", "-f", format, "./cmd/...")
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for line := range strings.FieldsSeq(string(out)) {
		name, err := filepath.Rel(root(t), line)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.ToSlash(name))
	}
	if len(files) < 100 {
		t.Fatalf("only %d files", len(files))
	}
	return files
}

// ko builds the same programs on the same base.
func TestKoBuildsAsTheMakefileDoes(t *testing.T) {
	var ko struct {
		DefaultBaseImage string   `yaml:"defaultBaseImage"`
		DefaultPlatforms []string `yaml:"defaultPlatforms"`
		DefaultEnv       []string `yaml:"defaultEnv"`
		DefaultFlags     []string `yaml:"defaultFlags"`
		DefaultLdflags   []string `yaml:"defaultLdflags"`
	}
	if err := yaml.Unmarshal([]byte(text(t, ".ko.yaml")), &ko); err != nil {
		t.Fatal(err)
	}
	makefile := text(t, "Makefile")
	if flags := "GOFLAGS_OWN := " + strings.Join(ko.DefaultFlags, " ") + "\n"; !strings.Contains(makefile, flags) {
		t.Errorf("the Makefile has no %q", flags)
	}
	stamp, _, _ := strings.Cut(strings.Join(ko.DefaultLdflags, " "), "{{")
	if flags := "LDFLAGS := " + strings.Replace(stamp, "github.com/weirproxy/weir", "$(MODULE)", 1) + "$(VERSION)\n"; !strings.Contains(makefile, flags) {
		t.Errorf("the Makefile has no %q", flags)
	}
	if !slices.Equal(ko.DefaultEnv, []string{"CGO_ENABLED=0"}) || !strings.Contains(makefile, "export CGO_ENABLED := 0\n") {
		t.Errorf("env %q", ko.DefaultEnv)
	}
	if base := theContainerfile(t).arg("BASE_IMAGE"); base == "" || ko.DefaultBaseImage != base {
		t.Errorf("base %s, the Containerfile's is %s", ko.DefaultBaseImage, base)
	}
	if !slices.Equal(ko.DefaultPlatforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q", ko.DefaultPlatforms)
	}
}

// make images asks docker for each program's target; here docker only says what it was asked.
func TestMakeImagesBuildsEachTarget(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho docker \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	images := func(args ...string) (string, error) {
		cmd := exec.Command("make", append([]string{"--no-print-directory", "--silent", "images", "VERSION=1.2.3"}, args...)...)
		cmd.Dir, cmd.Env = root(t), append(os.Environ(), "MAKEFLAGS=", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := images("REGISTRY=registry.example")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(programs(t)) {
		t.Errorf("docker is asked %d times:\n%s", len(lines), out)
	}
	for i, program := range programs(t) {
		for _, want := range []string{"-f Containerfile", "--target " + program + " ", "--platform linux/amd64,linux/arm64", "--build-arg VERSION=1.2.3",
			"--tag registry.example/" + program + ":1.2.3"} {
			if i >= len(lines) || !strings.Contains(lines[i], want) {
				t.Errorf("%s: no %q in:\n%s", program, want, out)
			}
		}
	}
	if out, err := images("REGISTRY="); err == nil || !strings.Contains(out, "REGISTRY=") {
		t.Errorf("without a registry: %v\n%s", err, out)
	}
}
