package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/weirproxy/weir/internal/simulate/measure"
	"github.com/weirproxy/weir/internal/simulate/render"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// maxPlots is how many plots a person would look through in a terminal.
const maxPlots = 4

// simulationOutput shows what runs measured.
type simulationOutput struct {
	out      io.Writer
	terminal render.Terminal
	json     bool
	files    *pictureFiles // nil: none are written
	results  []render.Result
	pictures []*render.Picture
	rates    int
}

func newSimulationOutput(o *simulation, out io.Writer, scenarios []*scenario.Scenario) *simulationOutput {
	s := &simulationOutput{out: out, terminal: terminalOf(out), json: o.json}
	for _, sc := range scenarios {
		s.rates += rateCount(sc)
	}
	if o.plot != "" {
		s.files = newPictureFiles(o.plot, s.rates > 1)
	}
	return s
}

func rateCount(s *scenario.Scenario) int {
	n := 0
	for i := range s.Policy.Limits {
		n += len(s.Policy.Limits[i].Rates)
	}
	return n
}

// add takes a scenario's runs; JSON and pictures are written at once.
func (o *simulationOutput) add(s *scenario.Scenario, runs []*measure.Run) error {
	sum := measure.Summarize(runs)
	sum.Name, sum.Title, sum.Single = s.Name, s.Title, s.Single
	result := render.Result{
		Summary: sum, Pods: s.Pods, Seconds: s.Duration.Seconds(),
		Referenced: s.Reference != nil, Misses: sum.Against(s.Reference),
	}
	o.results = append(o.results, result)
	if o.json {
		if err := json.NewEncoder(o.out).Encode(sum); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	for i := range runs[0].Rates {
		p := picture(s, &result, runs, i)
		if o.files != nil {
			if err := o.files.write(s.Name, limitName(s, &runs[0].Rates[i]), p); err != nil {
				return err
			}
		}
		if o.rates <= maxPlots {
			o.pictures = append(o.pictures, p)
		}
	}
	return nil
}

// limitName is "" for the limit that a scenario's one rate stands for.
func limitName(s *scenario.Scenario, r *measure.Rate) string {
	if s.Single {
		return ""
	}
	return r.Limit
}

// end prints the table and the plots.
func (o *simulationOutput) end() error {
	if o.json {
		return nil
	}
	if err := render.Table(o.out, o.results); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	for _, p := range o.pictures {
		fmt.Fprintln(o.out)
		if err := render.Plot(o.out, p, o.terminal); err != nil {
			return fmt.Errorf("write a plot: %w", err)
		}
	}
	return nil
}

// picture is rate i of the first run.
func picture(s *scenario.Scenario, r *render.Result, runs []*measure.Run, i int) *render.Picture {
	first := runs[0]
	rate := &first.Rates[i]
	p := &render.Picture{Title: s.Name, Series: rate.Series, Counters: rate.Counters}
	if s.Title != "" {
		p.Title += ": " + s.Title
	}
	var about []string
	if !r.Single {
		about = append(about, "limit "+rate.Limit)
	}
	about = append(about, rate.Title, count(s.Pods, "pod"))
	if rate.Counters > 1 {
		about = append(about, count(rate.Counters, "counter"))
	}
	about = append(about, fmt.Sprintf("seed %d: over %.1f %%, under %.1f %%", first.Seed, rate.Over, rate.Under))
	p.Subtitle = strings.Join(about, ", ")
	return p
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// pictureFiles names and writes pictures.
type pictureFiles struct {
	base    string // without .svg
	several bool
	used    map[string]bool
}

func newPictureFiles(file string, several bool) *pictureFiles {
	return &pictureFiles{strings.TrimSuffix(file, ".svg"), several, map[string]bool{}}
}

func (f *pictureFiles) write(scenario, limit string, p *render.Picture) error {
	var b strings.Builder
	if err := render.SVG(&b, p); err != nil {
		return err
	}
	if err := os.WriteFile(f.name(scenario, limit), []byte(b.String()), 0o644); err != nil { //nolint:gosec // a picture to show
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// name is a file of its own for each picture.
func (f *pictureFiles) name(scenario, limit string) string {
	if !f.several {
		return f.base + ".svg"
	}
	name := f.base + "-" + fileName(scenario)
	if limit != "" {
		name += "-" + fileName(limit)
	}
	unique := name
	for i := 2; f.used[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	f.used[unique] = true
	return unique + ".svg"
}

// fileName keeps of a text what is safe in every file's name.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, text)
}

// terminalOf is what out can show.
func terminalOf(out io.Writer) render.Terminal {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a descriptor is small
		return render.Terminal{}
	}
	t := render.Terminal{UTF8: utf8Locale(), Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil { //nolint:gosec // a descriptor is small
		t.Width = min(width, 100)
	}
	return t
}

// utf8Locale reports whether the environment says that characters are UTF-8.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}
