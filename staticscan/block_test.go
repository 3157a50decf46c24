package staticscan

import "testing"

// How much a store stores, and whether it varies. The bytes were assembled from asm by GNU as.
func TestStores(t *testing.T) {
	for _, test := range []struct {
		asm, code string
		size      int
		varies    bool
	}{
		{"mov ecx,11; rep stosq; ret", "b90b000000f348abc3", 88, false},
		{"mov ecx,50; rep movsq; ret", "b932000000f348a5c3", 400, false},
		{"mov rcx,rdx; rep movsb; ret", "4889d1f3a4c3", 1, true},
		{"nop; stosq; ret", "9048abc3", 8, false},
		{"nop; movups xmmword ptr [rdi],xmm1; ret", "900f110fc3", 16, false},
	} {
		s := sliced(t, test.code)
		s.now = len(s.a.flow.insts) - 2
		to := storeOperand(&s.a.flow.insts[s.now])
		if to == nil {
			t.Errorf("%s: %s stores nothing", test.asm, s.a.flow.insts[s.now].Text())
			continue
		}
		if size, varies := s.stores(to); size != test.size || varies != test.varies {
			t.Errorf("%s: stores %d bytes, varies %v; want %d, %v", test.asm, size, varies, test.size, test.varies)
		}
	}
}

// A store that is wider than the member that it begins in is to more than that.
func TestCovers(t *testing.T) {
	name := part{offset: 4, size: 64}
	for _, test := range []struct {
		offset, size int64
		want         bool
	}{{4, 64, true}, {60, 8, true}, {64, 16, false}, {4, 65, false}} {
		if got := name.covers(test.offset, test.size); got != test.want {
			t.Errorf("%d bytes at %d: %v, want %v", test.size, test.offset, got, test.want)
		}
	}
}
