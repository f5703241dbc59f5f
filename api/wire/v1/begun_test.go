package wirev1

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// Wherever a text is divided, what was begun ends as the hash of the whole.
func TestABegunHashEndsAsTheWhole(t *testing.T) {
	k := testKeys(t)
	text := make([]byte, 70)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	for n := range text {
		want := k.ID(text[:n])
		for at := range n + 1 {
			p := k.Prefix(text[:at])
			if got := p.ID(text[at:n]); got != want {
				t.Fatalf("%x divided at %d: %v, want %v", text[:n], at, got, want)
			}
		}
	}
}

func TestASecretHasOneHash(t *testing.T) {
	k := testKeys(t)
	for _, name := range []string{"", "x-key", "x-api-key", strings.Repeat("x", 600)} {
		s := k.Secret(DimClientHeader, name)
		for n := range 40 {
			value := bytes.Repeat([]byte{0xfe}, n)
			want := k.AppendSecret([]byte("a"), DimClientHeader, name, value)
			if got := s.Append([]byte("a"), value); !bytes.Equal(got, want) {
				t.Fatalf("%q, %d bytes: %q, want %q", name, n, got, want)
			}
		}
	}
}

func TestAnEndpointIsADimension(t *testing.T) {
	for _, n := range []int{0, 1, 122, 123, 300} {
		pattern := strings.Repeat("p", n)
		want := AppendDimension([]byte{1}, DimEndpoint, "", "POST "+pattern)
		if got := AppendEndpoint([]byte{1}, "POST", pattern); !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}

func TestABegunHashDoesNotAllocate(t *testing.T) {
	k := testKeys(t)
	p, s := k.Prefix(make([]byte, 61)), k.Secret(DimClientHeader, "x-api-key")
	rest, dst := make([]byte, 45), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { p.ID(rest); s.Append(dst, rest) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The identity of a counter by a hashed header: 61 bytes that a policy fixes, 45 of a request.
func BenchmarkID(b *testing.B) {
	k := testKeys(b)
	whole := make([]byte, 106)
	p, s := k.Prefix(whole[:61]), k.Secret(DimClientHeader, "x-api-key")
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.ID(whole)
		}
	})
	b.Run("begun", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.ID(whole[61:])
		}
	})
	dst := make([]byte, 0, 64)
	b.Run("secret", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.AppendSecret(dst, DimClientHeader, "x-api-key", whole[:33])
		}
	})
	b.Run("secret begun", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Append(dst, whole[:33])
		}
	})
}
