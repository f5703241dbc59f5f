package bus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"github.com/weirproxy/weir/internal/tlsfile"
)

// secrets are what the files of a Config hold.
type secrets struct {
	tls      *tls.Config
	password string
}

// load reads the files that c names. Errors name the field and the file, never a content.
func (c Config) load() (secrets, error) {
	var s secrets
	var err error
	if c.TLS.Enabled {
		if s.tls, err = c.TLS.config(); err != nil {
			return s, err
		}
	}
	if c.SASL.Mechanism != "" {
		b, err := os.ReadFile(c.SASL.PasswordFile)
		if err != nil {
			return s, fmt.Errorf("sasl.passwordFile: %w", err)
		}
		s.password = strings.TrimRight(string(b), "\r\n")
		if s.password == "" {
			return s, fmt.Errorf("sasl.passwordFile: %s is empty", c.SASL.PasswordFile)
		}
	}
	return s, nil
}

func (t TLS) config() (*tls.Config, error) {
	return tlsfile.Files{CA: t.CAFile, Cert: t.CertFile, Key: t.KeyFile, ServerName: t.ServerName}.Config("tls")
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
