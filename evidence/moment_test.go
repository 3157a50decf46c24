package evidence

import "testing"

func TestMomentText(t *testing.T) {
	for text, want := range map[string]Moment{
		"1:1":                         {Thread: 1, Ordinal: 1},
		"3:1204:0x401156":             {Thread: 3, Ordinal: 1204, PC: 0x401156, Count: 1},
		"3:1204:0x401156:17":          {Thread: 3, Ordinal: 1204, PC: 0x401156, Count: 17},
		"4294967295:9:0x7fffffffffff": {Thread: 1<<32 - 1, Ordinal: 9, PC: 0x7fffffffffff, Count: 1},
	} {
		got, err := ParseMoment(text)
		if err != nil || got != want {
			t.Errorf("ParseMoment(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("%+v prints as %q, not %q", got, got.String(), text)
		}
	}
}

func TestMomentRefused(t *testing.T) {
	for _, text := range []string{"", "1", "0:1", "1:0", "x:1", "1:1:401156", "1:1:0x", "1:1:0x0", "1:1:0x10:0",
		"1:1:0x10:1:1", "4294967296:1", "1:-1", " 1:1", "1:1:0x10000000000000000"} {
		if m, err := ParseMoment(text); err == nil {
			t.Errorf("ParseMoment(%q) = %+v, want an error", text, m)
		}
	}
}
