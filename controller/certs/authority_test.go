package certs

import (
	"bytes"
	"crypto/x509"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

var names = []string{"weir-webhook.weir-system.svc", "weir-webhook"}

const day = 24 * time.Hour

func renew(t *testing.T, s state, now time.Time, names []string) (state, string) {
	t.Helper()
	next, why, err := s.renewed(now, names)
	if err != nil {
		t.Fatal(err)
	}
	if why != "" && !next.serves(names, now) {
		t.Fatalf("%s (%s): the certificate convinces nobody", now, why)
	}
	return next, why
}

// Five years, looked at each day, by a kube-apiserver that learns of authorities a day late.
func TestACertificateIsAlwaysOfAnAuthorityThatWasTrustedADayAgo(t *testing.T) {
	s, why := renew(t, state{}, start, names)
	if why != whyNew {
		t.Errorf("the first is made because %s", why)
	}
	renewals := map[string]int{}
	for now := start.Add(day); now.Before(start.Add(5 * 365 * day)); now = now.Add(day) {
		known := s.authorities
		s, why = renew(t, s, now, names)
		renewals[why]++
		if why != "" && !(state{authorities: known, serving: s.serving}).serves(names, now) {
			t.Fatalf("%s (%s): the certificate is of an authority that nobody knows yet", now, why)
		}
		for _, a := range known {
			if now.Before(a.NotAfter) && !slices.ContainsFunc(s.authorities, a.Equal) {
				t.Fatalf("%s: an authority is trusted no more before its end", now)
			}
		}
		if left := s.serving.cert.NotAfter.Sub(now); left < certificateLife/3-day {
			t.Fatalf("%s: the certificate has %s left", now, left)
		}
		if len(s.authorities) > 2 {
			t.Fatalf("%s: %d authorities", now, len(s.authorities))
		}
	}
	if renewals[whyAuthority] < 6 || renewals[whyAuthority] > 10 || renewals[whyCertificate] < 20 || renewals[whyCertificate] > 35 || renewals[whyNew] > 0 {
		t.Errorf("in five years: %v", renewals)
	}
}

func TestWhatIsNotUsableIsMadeAnew(t *testing.T) {
	good, _ := renew(t, state{}, start, names)
	other, _ := renew(t, state{}, start, names)
	for name, tt := range map[string]struct {
		s     state
		now   time.Time
		names []string
		why   string
		keeps bool // the authority
	}{
		"as it is":                {s: good, why: "", keeps: true},
		"another name":            {s: good, names: []string{"weir-webhook.other.svc"}, why: whyNames, keeps: true},
		"no certificate":          {s: state{authorities: good.authorities, key: good.key}, why: whyNames, keeps: true},
		"another's certificate":   {s: state{good.authorities, good.key, other.serving}, why: whyNames, keeps: true},
		"another's key":           {s: state{good.authorities, good.key, signed{good.serving.cert, other.serving.key}}, why: whyNames, keeps: true},
		"no authority's key":      {s: state{authorities: good.authorities, serving: good.serving}, why: whyNew, keeps: true},
		"another authority's key": {s: state{good.authorities, other.key, good.serving}, why: whyNew, keeps: true},
		"asleep until it ended":   {s: good, now: start.Add(2 * 365 * day), why: whyNew},
		"asleep for 10 months":    {s: good, now: start.Add(300 * day), why: whyNew, keeps: true},
		"made in the future":      {s: good, now: start.Add(-day), why: whyNew, keeps: true},
	} {
		if tt.now.IsZero() {
			tt.now = start
		}
		if tt.names == nil {
			tt.names = names
		}
		next, why := renew(t, tt.s, tt.now, tt.names)
		if why != tt.why {
			t.Errorf("%s: renewed because %q, want %q", name, why, tt.why)
		}
		if slices.ContainsFunc(next.authorities, good.authorities[0].Equal) != tt.keeps {
			t.Errorf("%s: the authority is kept: %v", name, !tt.keeps)
		}
	}
}

func TestTheCertificateIsForAServerAndTheAuthorityForNothingElse(t *testing.T) {
	s, _ := renew(t, state{}, start, names)
	a, c := s.authorities[0], s.serving.cert
	if !a.IsCA || !a.MaxPathLenZero || a.KeyUsage != x509.KeyUsageCertSign {
		t.Errorf("the authority: %+v", a)
	}
	if c.IsCA || !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) || !slices.Equal(c.DNSNames, names) {
		t.Errorf("the certificate: %+v", c)
	}
}

func TestASecretHoldsTheWholeState(t *testing.T) {
	s, _ := renew(t, state{}, start, names)
	s, _ = renew(t, s, start.Add(250*day), names) // two authorities
	data, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := decode(data)
	if err != nil || len(back.authorities) != 2 {
		t.Fatal(len(back.authorities), err)
	}
	again, err := back.encode()
	if err != nil {
		t.Fatal(err)
	}
	for key := range data {
		if !bytes.Equal(data[key], again[key]) {
			t.Errorf("%s differs after decoding", key)
		}
	}
	if _, why := renew(t, back, start.Add(250*day), names); why != "" {
		t.Errorf("what was decoded is renewed: %s", why)
	}
}

// Whatever somebody wrote into the Secret, there is a certificate afterwards.
func FuzzDecode(f *testing.F) {
	s, _, err := state{}.renewed(start, names)
	if err != nil {
		f.Fatal(err)
	}
	data, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[keyAuthorities], data[keyAuthorityKey], data[keyCertificate], data[keyKey])
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte(nil), data[keyAuthorities], data[keyKey])
	f.Fuzz(func(t *testing.T, authorities, authorityKey, certificate, key []byte) {
		s, _ := decode(map[string][]byte{keyAuthorities: authorities, keyAuthorityKey: authorityKey, keyCertificate: certificate, keyKey: key})
		renew(t, s, start, names)
	})
}
