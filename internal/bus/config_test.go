package bus

import (
	"strings"
	"testing"
	"time"
)

func TestConfigErrorsNameTheFieldAndComeTogether(t *testing.T) {
	secret := file(t, "password", "x")
	for want, cfg := range map[string]Config{
		"":                                      {Brokers: []string{"a:1", "[::1]:9092"}},
		"kafka.brokers: name at least":          {},
		`kafka.brokers[1]: "b" is not`:          {Brokers: []string{"a:1", "b"}},
		`acks: "none"`:                          {Brokers: []string{"a:1"}, Acks: "none"},
		"clientID":                              {Brokers: []string{"a:1"}, ClientID: "a b"},
		"dialTimeout: 1h":                       {Brokers: []string{"a:1"}, DialTimeout: time.Hour},
		"backoffMin: 3s is above backoffMax 2s": {Brokers: []string{"a:1"}, BackoffMin: 3 * time.Second},
		"tls.enabled is not true":               {Brokers: []string{"a:1"}, TLS: TLS{CAFile: secret}},
		"kafka.tls.caFile: open":                {Brokers: []string{"a:1"}, TLS: TLS{Enabled: true, CAFile: secret + ".none"}},
		"certFile and keyFile go together":      {Brokers: []string{"a:1"}, TLS: TLS{Enabled: true, CertFile: secret}},
		"sasl.mechanism: name PLAIN":            {Brokers: []string{"a:1"}, SASL: SASL{Username: "u"}},
		`sasl.mechanism: "GSSAPI"`:              {Brokers: []string{"a:1"}, SASL: SASL{Mechanism: "GSSAPI"}},
		"sasl.passwordFile: is missing":         {Brokers: []string{"a:1"}, SASL: SASL{Mechanism: Plain, Username: "u"}},
		"sasl.username: is missing":             {Brokers: []string{"a:1"}, SASL: SASL{Mechanism: Plain, PasswordFile: secret}},
	} {
		err := cfg.Validate()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	err := Config{Acks: "none", SASL: SASL{Mechanism: Plain}}.Validate()
	for _, part := range []string{"brokers", "acks", "sasl.username", "sasl.passwordFile"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestConfigRefusesFilesThatHoldTheWrongThing(t *testing.T) {
	junk, empty := file(t, "junk", "junk"), file(t, "empty", "\n")
	for want, cfg := range map[string]Config{
		"holds no PEM certificate": {TLS: TLS{Enabled: true, CAFile: junk}},
		"tls.certFile":             {TLS: TLS{Enabled: true, CertFile: junk, KeyFile: junk}},
		"is empty":                 {SASL: SASL{Mechanism: Plain, Username: "u", PasswordFile: empty}},
	} {
		if _, err := cfg.load(secrets{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
