package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// Client knows the cluster: its brokers, topics and who leads what. It keeps no connection open:
// its own requests are few, and each has a short one. Safe for concurrent use.
type Client struct {
	cfg     Config
	secrets secrets // as Dial read them
	log     *zap.Logger

	asking chan struct{} // holds a value while a topic is asked for

	mu   sync.Mutex
	view *view
}

// Dial returns a client once a broker has answered. It tries again, with jittered pauses, until ctx
// ends, and says once (log, Config.State) what it waits for; a log line follows only when the reason
// changes. It fails at once where cfg is invalid or names unreadable files. These are read anew for each
// connection: a password that was wrong may be mended meanwhile, and a rotated one holds from the next on.
func Dial(ctx context.Context, cfg Config, log *zap.Logger) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	cfg = cfg.WithDefaults()
	sec, err := cfg.load(secrets{})
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	c := &Client{cfg: cfg, secrets: sec, log: log, view: &view{}, asking: make(chan struct{}, 1)}
	return c, c.await(ctx)
}

func (c *Client) await(ctx context.Context) error {
	said := states{f: func(reason string) {
		if reason != "" {
			c.log.Warn("waiting for Kafka", zap.Strings("brokers", c.cfg.Brokers), zap.String("reason", reason))
		}
		if c.cfg.State != nil {
			c.cfg.State(reason)
		}
	}}
	wait := c.backoff()
	for {
		err := c.Ping(ctx)
		if err == nil {
			said.set(c, reason{})
			c.log.Info("Kafka answers", zap.Strings("brokers", c.cfg.Brokers))
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("kafka: gave up waiting for a broker of %v: %w", c.cfg.Brokers, err)
		}
		said.set(c, reasonOf(err))
		if !pause(ctx, wait.step()) {
			return fmt.Errorf("kafka: gave up waiting for a broker of %v: %w", c.cfg.Brokers, err)
		}
	}
}

// Close ends the client. Readers, writers and groups made from it are ended by their own contexts.
func (c *Client) Close() error { return nil }

// Ping asks a broker for the cluster's brokers.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.refresh(ctx, "")
	if errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		return nil // the name asked for is nobody's; an answer is an answer
	}
	return err
}

func (c *Client) backoff() backoff { return backoff{min: c.cfg.BackoffMin, max: c.cfg.BackoffMax} }

// view is what the cluster said of itself; immutable once it is in a Client.
type view struct {
	brokers map[int32]string
	topics  map[string]topicView
}

type topicView struct {
	id    TopicID
	parts []partView // by partition
	at    time.Time
}

type partView struct {
	leader, epoch int32
}

// any runs f on a short connection to one broker after the other, known ones and bootstrap ones in
// random order, until one call does not fail on the connection.
func (c *Client) any(ctx context.Context, f func(*sarama.Broker) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout+c.cfg.RequestTimeout)
	defer cancel()
	var errs []error
	for _, addr := range c.addrs() {
		l, err := c.open(ctx, addr, c.cfg.RequestTimeout)
		if err == nil {
			err = l.do(ctx, f)
			l.close()
		}
		var refused sarama.KError
		if err == nil || errors.As(err, &refused) {
			return err
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (c *Client) addrs() []string {
	c.mu.Lock()
	v := c.view
	c.mu.Unlock()
	out := slices.Clone(c.cfg.Brokers)
	for _, a := range v.brokers {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// refresh asks for the brokers and, unless topic is "", that topic.
func (c *Client) refresh(ctx context.Context, topic string) (*view, error) {
	asked := time.Now()
	var answer *sarama.MetadataResponse
	err := c.any(ctx, func(b *sarama.Broker) (err error) {
		answer, err = b.GetMetadata(metadataRequest(topic))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask Kafka for its topics: %w", err)
	}
	return c.take(answer, asked)
}

func metadataRequest(topic string) *sarama.MetadataRequest {
	if topic == "" {
		// An empty list means all topics from version 1 on; a name that no topic can have asks for none.
		return sarama.NewMetadataRequest(sarama.MaxVersion, []string{"weir..none"})
	}
	return sarama.NewMetadataRequest(sarama.MaxVersion, []string{topic})
}

// take puts an answer into the view; topics that were not asked for stay.
func (c *Client) take(answer *sarama.MetadataResponse, asked time.Time) (*view, error) {
	next := &view{brokers: map[int32]string{}, topics: map[string]topicView{}}
	for _, b := range answer.Brokers {
		next.brokers[b.ID()] = b.Addr()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.view.topics {
		next.topics[name] = t
	}
	var refused error
	for _, t := range answer.Topics {
		delete(next.topics, t.Name)
		switch t.Err {
		case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
			next.topics[t.Name] = viewOf(t, asked)
		case sarama.ErrTopicAuthorizationFailed:
			refused = fmt.Errorf("topic %s: this user may not describe it: %w", t.Name, t.Err)
		}
	}
	c.view = next
	return next, refused
}

func viewOf(t *sarama.TopicMetadata, asked time.Time) topicView {
	out := topicView{id: TopicID(t.Uuid), parts: make([]partView, len(t.Partitions)), at: asked}
	for i := range out.parts {
		out.parts[i] = partView{leader: -1, epoch: -1}
	}
	for _, p := range t.Partitions {
		if p.ID >= 0 && int(p.ID) < len(out.parts) {
			out.parts[p.ID] = partView{leader: p.Leader, epoch: p.LeaderEpoch}
		}
	}
	return out
}

// ErrNoTopic says that a topic, or a partition of it, does not exist.
var ErrNoTopic = errors.New("does not exist: make the topics with `weir-aggregator topics ensure`")

// topic returns what is known of a topic since the given time, asking if nothing is.
func (c *Client) topic(ctx context.Context, name string, since time.Time) (topicView, *view, error) {
	if t, v := c.known(name); !t.at.Before(since) && t.parts != nil {
		return t, v, nil
	}
	select { // when all lanes of a lost broker ask, one does so for all
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return topicView{}, nil, context.Cause(ctx)
	}
	if t, v := c.known(name); !t.at.Before(since) && t.parts != nil {
		return t, v, nil
	}
	v, err := c.refresh(ctx, name)
	if err != nil {
		return topicView{}, nil, err
	}
	t, known := v.topics[name]
	if !known {
		return topicView{}, nil, fmt.Errorf("topic %s %w", name, ErrNoTopic)
	}
	return t, v, nil
}

// known returns what is known of a topic; without partitions if nothing is.
func (c *Client) known(name string) (topicView, *view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.topics[name], c.view
}

// leader returns the address of a partition's leader as known since the given time, and the topic.
func (c *Client) leader(ctx context.Context, topic string, partition int32, since time.Time) (string, topicView, error) {
	t, v, err := c.topic(ctx, topic, since)
	if err != nil {
		return "", t, err
	}
	if partition < 0 || int(partition) >= len(t.parts) {
		return "", t, fmt.Errorf("partition %d of topic %s %w", partition, topic, ErrNoTopic)
	}
	addr, up := v.brokers[t.parts[partition].leader]
	if !up {
		c.forget(topic)
		return "", t, fmt.Errorf("partition %d of topic %s has no leader now", partition, topic)
	}
	return addr, t, nil
}

// forget makes the next use of a topic ask anew.
func (c *Client) forget(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := &view{brokers: c.view.brokers, topics: map[string]topicView{}}
	for name, t := range c.view.topics {
		if name != topic {
			next.topics[name] = t
		}
	}
	c.view = next
}

// TopicID asks for the topic's own id. ErrNoTopic where it does not exist.
func (c *Client) TopicID(ctx context.Context, topic string) (TopicID, error) {
	t, _, err := c.topic(ctx, topic, time.Now())
	return t.id, err
}

// Partitions asks for the number of a topic's partitions. ErrNoTopic where it does not exist.
func (c *Client) Partitions(ctx context.Context, topic string) (int32, error) {
	t, _, err := c.topic(ctx, topic, time.Now())
	return int32(len(t.parts)), err //nolint:gosec // Kafka counts partitions in 32 bits
}
