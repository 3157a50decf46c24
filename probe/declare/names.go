package declare

import "strings"

// keywords of C11 (6.4.1), and of GNU C, which names of a program may not replace.
var keywords = wordSet(`auto break case char const continue default do double else enum extern float for goto if inline int long register
	restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas _Alignof _Atomic _Bool
	_Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local asm typeof bool true false nullptr constexpr alignas alignof
	static_assert thread_local typeof_unqual _BitInt _Decimal128 _Decimal32 _Decimal64 _Float16 _Float32 _Float64 _Float128 _Float32x
	_Float64x _Float128x main`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// own begins the names that this package makes.
const own = "_dg_"

// mostName bounds the length of a name.
const mostName = 200

// isName reports whether a name may be declared: it is an identifier, no keyword, and none of those that belong to the compiler or to
// this package (C11 7.1.3 reserves more, which programs use all the same).
func isName(name string) bool {
	if name == "" || len(name) > mostName || keywords[name] || strings.HasPrefix(name, "__") || strings.HasPrefix(name, own) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
