package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

const file = "../../charts/weir/files/dashboards/weir.json"

func TestTheChartsDashboardIsCurrent(t *testing.T) {
	made, err := render()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, kept) {
		t.Errorf("%s is out of date: run make dashboards", file)
	}
}

type placed struct {
	Title, Type, Description string
	ID                       int
	Panels                   []placed
	GridPos                  struct{ X, Y, W, H int }
}

// Panels that overlap are moved about by Grafana, and a link to a panel names its id.
func TestPanelsHaveTheirOwnPlaceAndId(t *testing.T) {
	b, err := render()
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels []placed }
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	all := d.Panels
	for _, row := range d.Panels {
		all = append(all, row.Panels...)
	}
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range all {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("%q and %q have the id %d", p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		if p.Type != "row" && p.Description == "" {
			t.Errorf("%q does not say what it shows", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken || x >= 24 {
					t.Fatalf("%q is where %q is, or beyond the grid's 24 columns", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}
