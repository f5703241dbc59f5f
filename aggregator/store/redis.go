package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

const (
	chunkCounters = 500 // counters a script call
	loadCounters  = 500 // counters a pipeline of loads
	dialTimeout   = time.Second
)

// Redis is the store on a Redis or Valkey server. It connects at the first call and again after any
// loss; calls fail fast with ErrUnavailable in between. It is safe for concurrent use.
type Redis struct {
	config  Config
	option  rueidis.ClientOption
	breaker breaker
	flush   *rueidis.Lua
	claim   *rueidis.Lua

	mu      sync.Mutex
	client  rueidis.Client
	dialing chan struct{} // closed once the connecting that is under way has ended; nil: none is
	dialErr error         // of the one that ended last
	closed  bool
}

// New checks the configuration and the files it names; it does not connect.
func New(c Config) (*Redis, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	option, err := c.option()
	if err != nil {
		return nil, err
	}
	return &Redis{
		config: c, option: option,
		flush: rueidis.NewLuaScript(flushScript), claim: rueidis.NewLuaScript(claimScript),
	}, nil
}

func (c Config) option() (rueidis.ClientOption, error) {
	tls, err := c.TLS.config()
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	if _, err := readPassword("sentinel.passwordFile", c.Sentinel.PasswordFile); err != nil {
		return rueidis.ClientOption{}, err
	}
	if _, err := readPassword("passwordFile", c.PasswordFile); err != nil {
		return rueidis.ClientOption{}, err
	}
	o := rueidis.ClientOption{
		InitAddress: c.Addresses, TLSConfig: tls, ClientName: "weir-aggregator",
		Dialer:       net.Dialer{Timeout: dialTimeout, KeepAlive: time.Second},
		DisableCache: true, AlwaysRESP2: true, DisableRetry: true,
		ForceSingleClient: !c.Cluster && c.Sentinel.Master == "",
		PipelineMultiplex: 1, ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 256 << 10,
		ConnWriteTimeout: 5 * time.Second,
		DialCtxFn:        dial, AuthCredentialsFn: c.credentials,
	}
	if c.Sentinel.Master != "" {
		o.Sentinel = rueidis.SentinelOption{
			Dialer: o.Dialer, TLSConfig: tls, MasterSet: c.Sentinel.Master, ClientName: o.ClientName,
			TopologyRefreshInterval: 5 * time.Second,
		}
		o.Sentinel.Dialer.Resolver = sentinelResolver
	}
	return o, nil
}

// Close ends the connections; later calls fail.
func (r *Redis) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.client != nil {
		r.client.Close()
		r.client = nil
	}
}

// Ping reports whether the server answers.
func (r *Redis) Ping(ctx context.Context) error {
	return r.do(ctx, "ping", func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Ping().Build()).Error()
	})
}

// Claim writes o's epoch into the partition's record, from when on older owners are refused, and
// returns the record as it was (Offset −1 if there was none). ErrFenced: a newer epoch is there.
func (r *Redis) Claim(ctx context.Context, o Owner) (Record, error) {
	var before Record
	err := r.do(ctx, "claim", func(ctx context.Context, c rueidis.Client) error {
		args := []string{o.LogID.text(), fmt.Sprint(o.Epoch)}
		answer, err := r.claim.Exec(ctx, c, []string{recordKey(o.Partition)}, args).ToArray()
		if err != nil {
			return err
		}
		status, err := answer[0].AsInt64()
		if err != nil {
			return err
		}
		hash, err := texts(answer[1:])
		if err != nil {
			return err
		}
		if status != 0 {
			by, err := strconv.ParseInt(hash[0], 10, 64)
			if err != nil {
				return err
			}
			return fenced(o, by)
		}
		before, err = parseRecord(hash)
		return err
	})
	return before, err
}

// LoadCounters returns the counters with these ids, in their order; Found false for those that the
// store lacks.
func (r *Redis) LoadCounters(ctx context.Context, partition int32, ids []wirev1.ID) ([]Saved, error) {
	out := make([]Saved, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), loadCounters)
		err := r.do(ctx, "load", func(ctx context.Context, c rueidis.Client) (err error) {
			out, err = load(ctx, c, partition, ids[:n], out)
			return err
		})
		if err != nil {
			return nil, err
		}
		ids = ids[n:]
	}
	return out, nil
}

func load(ctx context.Context, c rueidis.Client, p int32, ids []wirev1.ID, out []Saved) ([]Saved, error) {
	cmds := make(rueidis.Commands, len(ids))
	for i, id := range ids {
		cmds[i] = c.B().Hgetall().Key(counterKey(p, id)).Build()
	}
	for i, answer := range c.DoMulti(ctx, cmds...) {
		array, err := answer.ToArray()
		if err != nil {
			return out, err
		}
		hash, err := texts(array)
		if err != nil {
			return out, err
		}
		saved, err := parseCounter(ids[i], hash)
		if err != nil { // one that is spoiled is as good as lost
			saved = Saved{ID: ids[i], Through: -1}
		}
		out = append(out, saved)
	}
	return out, nil
}

func texts(a []rueidis.RedisMessage) ([]string, error) {
	out := make([]string, len(a))
	for i := range a {
		s, err := a[i].ToString()
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// Flush writes f's counters chunk by chunk and then the record, with the last chunk. Nothing of
// the record but the fence is written before every counter is. Errors: ErrFenced, ErrLost,
// ErrSuperseded, or one that wraps ErrUnavailable, after which chunks may or may not be written, or
// be written later: repeat their counters under a new Sequence. f is not kept.
func (r *Redis) Flush(ctx context.Context, f *Flush) error {
	var c chunk
	rest := f.Counters
	for first := true; first || len(rest) > 0; first = false {
		n := min(len(rest), chunkCounters)
		c.begin(f, first, n == len(rest))
		for i := range rest[:n] {
			c.counter(f, &rest[i])
		}
		if err := r.send(ctx, f, &c); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func (r *Redis) send(ctx context.Context, f *Flush, c *chunk) error {
	keys, args := c.keys.strings(), c.args.strings()
	return r.do(ctx, "flush", func(ctx context.Context, client rueidis.Client) error {
		answer, err := r.flush.Exec(ctx, client, keys, args).AsIntSlice()
		if err != nil {
			return err
		}
		switch answer[0] {
		case 0:
			return nil
		case 1:
			return fenced(f.Owner, answer[1])
		case 2:
			return ErrSuperseded
		default:
			return ErrLost
		}
	})
}

// do makes one call under the deadline and the breaker. An answer of the contract (fenced, lost,
// superseded) shows a healthy server.
func (r *Redis) do(ctx context.Context, what string, call func(context.Context, rueidis.Client) error) error {
	if !r.breaker.allow(time.Now()) {
		return fmt.Errorf("redis %s: %w (paused after failures)", what, ErrUnavailable)
	}
	bounded, cancel := context.WithTimeout(ctx, r.config.timeout())
	defer cancel()
	client, err := r.connect(bounded)
	if err == nil {
		err = call(bounded, client)
	}
	if err != nil && ctx.Err() != nil { // given up by the caller: that says nothing of the server
		return fmt.Errorf("redis %s: %w: %w", what, ErrUnavailable, ctx.Err())
	}
	known := errors.Is(err, ErrFenced) || errors.Is(err, ErrLost) || errors.Is(err, ErrSuperseded)
	r.breaker.done(err == nil || known, time.Now())
	if err == nil || known {
		return err
	}
	return fmt.Errorf("redis %s at %v: %w: %w", what, r.config.Addresses, ErrUnavailable, err)
}

// connect returns the client. Connecting takes longer than a call may, and the library's cannot be broken
// off: it goes on beside the callers, one for all of them.
func (r *Redis) connect(ctx context.Context) (rueidis.Client, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errors.New("the store is closed")
	}
	if client := r.client; client != nil {
		r.mu.Unlock()
		return client, nil
	}
	if r.dialing == nil {
		r.dialing = make(chan struct{})
		go r.dial()
	}
	ended := r.dialing
	r.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		return nil, fmt.Errorf("connecting: %w", ctx.Err())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		return nil, r.dialErr
	}
	return r.client, nil
}

func (r *Redis) dial() {
	client, err := rueidis.NewClient(r.option)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.closed {
		client.Close()
		err = errors.New("the store is closed")
	}
	if r.dialErr = err; err == nil {
		r.client = client
	}
	close(r.dialing)
	r.dialing = nil
}
