package inflate

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"math/rand"
	"testing"
)

func pack(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func samples() map[string][]byte {
	random := rand.New(rand.NewSource(1))
	noise := make([]byte, 100_000)
	random.Read(noise)
	text := make([]byte, 0, 300_000)
	for len(text) < 290_000 {
		switch random.Intn(4) {
		case 0:
			text = append(text, noise[:random.Intn(40)]...)
		case 1:
			text = append(text, bytes.Repeat([]byte{byte(random.Intn(4))}, random.Intn(600))...)
		case 2:
			text = append(text, "DW_TAG_subprogram DW_AT_name"[random.Intn(20):]...)
		case 3:
			text = append(text, byte(random.ExpFloat64()*4))
		}
	}
	return map[string][]byte{"empty": {}, "byte": {7}, "noise": noise, "zeros": make([]byte, 70_000), "text": text}
}

func TestEqualsCompressZlib(t *testing.T) {
	for name, data := range samples() {
		for _, level := range []int{0, 1, 6, 9, zlib.HuffmanOnly} {
			packed := pack(t, data, level)
			got := make([]byte, len(data))
			if err := Zlib(got, packed, nil); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s at level %d: %v, equal %v", name, level, err, bytes.Equal(got, data))
			}
			for _, size := range []int{len(data) - 1, len(data) + 1} {
				if size >= 0 && Zlib(make([]byte, size), packed, nil) == nil {
					t.Errorf("%s at level %d: %d bytes are not %d", name, level, len(data), size)
				}
			}
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	data := samples()["text"][:5000]
	packed := pack(t, data, 6)
	for n := range packed {
		var located *Error
		if err := Zlib(make([]byte, len(data)), packed[:n], nil); !errors.As(err, &located) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		damaged := bytes.Clone(packed)
		damaged[n] ^= 0x10
		// a bit that no code depends on may change
		got := make([]byte, len(data))
		if Zlib(got, damaged, nil) == nil && !bytes.Equal(got, data) {
			t.Fatalf("damage at %d went unseen", n)
		}
	}
}

func TestConsumedIsTold(t *testing.T) {
	noise := make([]byte, 20<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	packed := pack(t, noise, 6)
	last, calls := 0, 0
	err := Zlib(make([]byte, len(noise)), packed, func(n int) {
		if n <= last || n > len(packed) {
			t.Errorf("told %d after %d", n, last)
		}
		clear(packed[last:n]) // nothing there may be read again
		last, calls = n, calls+1
	})
	if err != nil || calls < 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func FuzzZlib(f *testing.F) {
	for _, data := range samples() {
		f.Add(pack(f, data[:min(len(data), 2000)], 6), uint16(min(len(data), 2000)))
	}
	f.Add([]byte{0x78, 0x9c, 0x05, 0x80}, uint16(100))
	f.Fuzz(func(t *testing.T, packed []byte, size uint16) {
		got := make([]byte, size)
		err := Zlib(got, packed, nil)
		r, wantErr := zlib.NewReader(bytes.NewReader(packed))
		var want []byte
		if wantErr == nil {
			want, wantErr = io.ReadAll(io.LimitReader(r, int64(size)+1))
		}
		whole := wantErr == nil && len(want) == int(size)
		if whole != (err == nil) || whole && !bytes.Equal(got, want) {
			t.Errorf("got %v, compress/zlib %v with %d of %d bytes", err, wantErr, len(want), size)
		}
	})
}

func BenchmarkZlib(b *testing.B) {
	data := samples()["text"]
	packed := pack(b, data, 6)
	dst := make([]byte, len(data))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := Zlib(dst, packed, nil); err != nil {
			b.Fatal(err)
		}
	}
}
