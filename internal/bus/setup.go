package bus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"github.com/weirproxy/weir/internal/tlsfile"
)

// secrets are what the files of a Config held when they were read.
type secrets struct {
	tls      *tls.Config
	password string
}

// Bytes that a file may have.
const (
	maxPassword = 64 << 10
	maxCA       = 4 << 20
)

// load reads the files that c names: for each connection anew, so that what is mended or rotated in a mounted
// Secret holds at the next one. A pipe is read once: what it gave is kept from before. Errors name the field and
// the file, never a content.
func (c Config) load(before secrets) (secrets, error) {
	var s secrets
	var err error
	if c.TLS.Enabled {
		if s.tls, err = c.TLS.load(before.tls); err != nil {
			return s, err
		}
	}
	if c.SASL.Mechanism != "" {
		s.password, err = c.SASL.load(before.password)
	}
	return s, err
}

func (t TLS) load(before *tls.Config) (*tls.Config, error) {
	if t.CAFile != "" {
		switch info, err := os.Stat(t.CAFile); {
		case err != nil:
			return nil, fmt.Errorf("tls.caFile: %w", err)
		case !info.Mode().IsRegular() && before != nil:
			return before, nil
		case info.Size() > maxCA:
			return nil, fmt.Errorf("tls.caFile: %s is larger than %d bytes", t.CAFile, maxCA)
		}
	}
	return t.config()
}

func (s SASL) load(before string) (string, error) {
	f, err := os.Open(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("sasl.passwordFile: %w", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() && before != "" {
		return before, nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("sasl.passwordFile: %w", err)
	}
	password := strings.TrimRight(string(b), "\r\n")
	switch {
	case password == "":
		return "", fmt.Errorf("sasl.passwordFile: %s is empty", s.PasswordFile)
	case len(b) > maxPassword:
		return "", fmt.Errorf("sasl.passwordFile: %s is larger than %d bytes", s.PasswordFile, maxPassword)
	}
	return password, nil
}

func (t TLS) config() (*tls.Config, error) {
	return tlsfile.Files{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, ServerName: t.ServerName}.Config("tls")
}

// sarama reads c's files anew and returns a configuration for one connection, whose answers may take up to read.
func (c *Client) sarama(read time.Duration) (*sarama.Config, error) {
	s, err := c.cfg.load(c.secrets)
	if err != nil {
		return nil, err
	}
	return c.cfg.sarama(s, read), nil
}

// sarama returns a configuration for one connection, whose answers may take up to read. Each has a
// metrics registry of its own, which closing the connection empties.
func (c Config) sarama(s secrets, read time.Duration) *sarama.Config {
	out := sarama.NewConfig()
	out.Version = sarama.MaxVersion
	out.ClientID = c.ClientID
	out.RackID = c.RackID
	out.Metadata.AllowAutoTopicCreation = false
	out.Net.MaxOpenRequests = 1
	out.Net.DialTimeout = c.DialTimeout
	out.Net.ReadTimeout = read
	out.Net.WriteTimeout = c.RequestTimeout
	out.Admin.Timeout = c.RequestTimeout
	out.Admin.Retry.Max = 2
	out.Net.TLS.Enable = s.tls != nil
	out.Net.TLS.Config = s.tls
	c.SASL.apply(out, s.password)
	return out
}

func (s SASL) apply(out *sarama.Config, password string) {
	if s.Mechanism == "" {
		return
	}
	out.Net.SASL.Enable = true
	out.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
	out.Net.SASL.User = s.Username
	out.Net.SASL.Password = password
	switch s.Mechanism {
	case ScramSHA256:
		out.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA256} }
	case ScramSHA512:
		out.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: scram.SHA512} }
	}
}

// scramClient is one SCRAM conversation, as Sarama wants it.
type scramClient struct {
	hash scram.HashGeneratorFcn
	talk *scram.ClientConversation
}

func (s *scramClient) Begin(user, password, authzID string) error {
	c, err := s.hash.NewClient(user, password, authzID)
	if err != nil {
		return fmt.Errorf("sasl: the user name or password cannot be prepared for SCRAM: %w", err)
	}
	s.talk = c.NewConversation()
	return nil
}

func (s *scramClient) Step(challenge string) (string, error) {
	if s.talk == nil {
		return "", errors.New("sasl: SCRAM conversation not begun")
	}
	return s.talk.Step(challenge)
}

func (s *scramClient) Done() bool { return s.talk != nil && s.talk.Done() }
