package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	clientHeader = "x-api-key"
	// most is how many requests are tried until one is refused.
	most = 1000
)

// show sends requests as one client, to each pod in turn, until one is refused, and prints what the client sees.
func (i *installation) show(ctx context.Context) error {
	i.sayf("\nready\n\none client's requests:\n")
	seen, times := "", 0
	for n := range most {
		p := i.pods[n%len(i.pods)]
		status, header, body, err := get(ctx, p.url+"/", "me")
		if err != nil {
			return fmt.Errorf("ask %s: %w", p.url, err)
		}
		line := fmt.Sprintf("%d  %s", status, firstLine(body))
		if status == http.StatusTooManyRequests {
			i.counted(times, seen)
			i.refusal(p, header, body)
			return i.more()
		}
		if line != seen {
			i.counted(times, seen)
			seen, times = line, 0
		}
		times++
		if err := pause(ctx, i.pace); err != nil {
			return err
		}
	}
	i.counted(times, seen)
	i.sayf("none of %d was refused: no limit of %s is that low\n", most, i.policies)
	return i.more()
}

func (i *installation) counted(times int, line string) {
	if times > 0 {
		i.sayf("  %3d × %s\n", times, line)
	}
}

// refusal prints an answer as curl -i does.
func (i *installation) refusal(p *pod, header http.Header, body string) {
	i.sayf("    1 × 429\n\n$ curl -i -H '%s: me' %s/\nHTTP/1.1 429 Too Many Requests\n", clientHeader, p.url)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		i.sayf("%s: %s\n", strings.ToLower(name), strings.Join(header[name], ", "))
	}
	i.sayf("\n%s\n", strings.TrimSpace(body))
}

// more says what to try by hand.
func (i *installation) more() error {
	i.sayf("\ntry it:\n")
	for _, p := range i.pods {
		i.sayf("  curl -i -H '%s: you' %s/    # %s\n", clientHeader, p.url, p.name)
	}
	i.sayf("  %s explain --sidecar %s --header '%s: you'\n", i.program("weir"), i.pods[0].adminAddress(), clientHeader)
	i.sayf("  edit %s: it is in force a second after you save it\n", i.policies)
	return nil
}

// get returns an answer's status, header and body, of which it reads 64 KiB at most.
func get(ctx context.Context, url, client string) (int, http.Header, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	if client != "" {
		r.Header.Set(clientHeader, client)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	return res.StatusCode, res.Header, string(body), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
