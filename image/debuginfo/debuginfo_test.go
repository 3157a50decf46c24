package debuginfo

import (
	"testing"

	"diagnose/image/object"
	"diagnose/internal/crashtest"
)

// source texts of the programs that the tests compile. Together they use
// inlined calls, lexical blocks, nested templates, and every kind of type.
const cText = `
#include <stddef.h>
#include <stdio.h>
struct node { struct node *next; int value; unsigned flags:3, kind:5; char name[16]; };
enum color { RED, GREEN = 5, BLUE = -2 };
union either { long i; double d; struct { char c; short s; }; };
typedef int (*callback)(int, const char *);
struct all {
  _Bool b; char c; short s; int i; long l; float f; double d; long double ld;
  int grid[4][3]; struct node nodes[2]; union either e; callback cb; enum color color;
  unsigned long long wide:40, rest:24; void *p; const char *text; volatile int v;
  struct { int x, y; }; int (*rows)[3]; const struct node *const *chain; char tail[];
};
struct opaque;
static int counter;
int global_array[4][3];
__thread int tls_other, tls_var = 3;
struct all everything;
extern struct opaque *handle;
struct opaque *handle;
static inline __attribute__((always_inline)) int twice(int x) { int y = x * 2; counter += y; return y; }
static inline __attribute__((always_inline)) int quad(int x) { int z = twice(x); return twice(z) + 1; }
__attribute__((noinline)) int work(struct node *n, enum color c) {
  static int calls;
  int sum = calls++;
  for (struct node *p = n; p; p = p->next) {
    int v = quad(p->value);
    if (c == GREEN) { int w = v * v; sum += w; }
    sum += v;
  }
  tls_var++;
  return sum;
}
#define OFF(m) printf(#m " %zu %zu\n", offsetof(struct all, m), sizeof(((struct all *)0)->m))
int main(int argc, char **argv) {
  struct node a = {0, argc, 1, 2, "a"}, b = {&a, 3, 0, 0, "b"};
  if (work(&b, argc > 1 ? GREEN : RED) < 0) return 1;
  OFF(b); OFF(c); OFF(s); OFF(i); OFF(l); OFF(f); OFF(d); OFF(ld); OFF(grid); OFF(nodes); OFF(e); OFF(cb);
  OFF(color); OFF(p); OFF(text); OFF(v); OFF(x); OFF(y); OFF(rows); OFF(chain);
  printf("all %zu\n", sizeof(struct all));
  return argv == 0;
}
`

const cxxText = `
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace ns {
namespace { int hidden = 3; }
struct Base { virtual ~Base() {} virtual int f(int) const { return hidden; } int b = 1; };
template <class T> struct Derived : Base {
  T t; int f(int x) const override { return x + (int)t.size(); } static int s; };
template <class T> int Derived<T>::s = 9;
int visible = 4;
enum class E : short { A = -1, B = 7 };
struct Bits { unsigned a:3, b:9; long c:40; int d; };
template <class T> static __attribute__((noinline)) int local(T x) { return hidden += (int)x; }
int go(std::vector<std::string> &v, const std::map<int, std::string> &m, E e) {
  std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) { return a.size() < b.size(); });
  int n = local<unsigned long>(v.size());
  for (auto &s : v) n += s.size();
  for (auto &[k, x] : m) n += k + x.size();
  if (e == E::B) v.push_back("x" + std::to_string(n));
  return n;
}
}
struct Left { int l; }; struct Right { long r; };
struct Both : Left, Right { int own; int &ref; int &&rref; int Both::*data; int (Both::*code)(int); int g(int x) { return x; } };
struct Virtual : virtual Left { int v; };
int main(int argc, char **argv) {
  std::vector<std::string> v(argv, argv + argc);
  std::map<int, std::string> m{{1, "a"}, {2, "b"}};
  auto d = std::make_shared<ns::Derived<std::string>>();
  ns::Base *b = d.get();
  Both both{{1}, {2}, 3, argc, std::move(argc), &Both::own, &Both::g};
  Virtual virt; virt.v = 1;
  ns::Bits bits{1, 2, 3, 4};
  printf("%d %d\n", ns::go(v, m, ns::E::B), b->f(argc) + (both.*both.code)(1) + bits.b + virt.v + ns::visible);
  return ns::Derived<std::string>::s == 8;
}
`

const rustText = `
#[derive(Debug, Clone)]
pub enum Shape { Unit, Circle(f64), Rect { w: u32, h: u32 }, Named(String) }
pub struct Holder<'a> { s: &'a str, v: Vec<Shape>, o: Option<Box<u32>>, t: (i32, u8), list: &'a [u16] }
static mut COUNTER: u64 = 7;
impl<'a> Holder<'a> {
    #[inline(never)]
    pub fn area(&self, k: usize) -> f64 {
        let shape = Shape::Rect { w: 3, h: k as u32 };
        let z = self.v.iter().map(|s| match s {
            Shape::Unit => 0.0, Shape::Circle(r) => r * r,
            Shape::Rect { w, h } => (w * h) as f64, Shape::Named(n) => n.len() as f64 }).sum::<f64>();
        println!("{:?}", shape);
        z + k as f64 + self.s.len() as f64 + self.t.0 as f64 + self.list.len() as f64
    }
}
fn main() {
    let h = Holder { s: "hello", v: vec![Shape::Unit, Shape::Circle(2.0), Shape::Named("x".into())],
        o: Some(Box::new(3)), t: (1, 2), list: &[1, 2, 3] };
    unsafe { COUNTER += h.v.len() as u64; }
    println!("{} {:?}", h.area(1), h.o);
}
`

// variants are the ways in which the tests compile.
type variant struct {
	name, file, text, compiler string
	flags                      []string
}

func variants() []variant {
	c := func(name, compiler string, flags ...string) variant {
		return variant{"c-" + name, "prog.c", cText, compiler, flags}
	}
	cxx := func(name, compiler string, flags ...string) variant {
		return variant{"cxx-" + name, "prog.cc", cxxText, compiler, append(flags, "-std=c++17")}
	}
	return []variant{
		c("gcc-O0", "gcc", "-O0"), c("gcc-O2", "gcc", "-O2"), c("gcc-O2-dwarf4", "gcc", "-O2", "-gdwarf-4"),
		c("gcc-O2-dwarf3", "gcc", "-O2", "-gdwarf-3", "-gstrict-dwarf"),
		c("clang-O2", "clang", "-O2"), c("clang-O2-dwarf4", "clang", "-O2", "-gdwarf-4"),
		c("gcc-split", "gcc", "-O2", "-gsplit-dwarf"), c("clang-dwarf5", "clang", "-O2", "-gdwarf-5"),
		cxx("gcc-O2", "g++", "-O2"), cxx("gcc-O0", "g++", "-O0"), cxx("clang-O2", "clang++", "-O2"),
		cxx("gcc-types4", "g++", "-O2", "-gdwarf-4", "-fdebug-types-section"),
		cxx("gcc-types5", "g++", "-O2", "-gdwarf-5", "-fdebug-types-section"),
		cxx("gcc-split4", "g++", "-O2", "-gdwarf-4", "-gsplit-dwarf"),
		cxx("gcc-split5", "g++", "-O2", "-gdwarf-5", "-gsplit-dwarf"),
		cxx("gcc-split-types", "g++", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"),
		{"rust-O0", "prog.rs", rustText, "rustc", nil},
		{"rust-O2", "prog.rs", rustText, "rustc", []string{"-C", "opt-level=2"}},
	}
}

// build compiles a variant and opens its DWARF.
func build(t testing.TB, v variant) (exe string, info *Info) {
	t.Helper()
	exe = crashtest.Compile(t, crashtest.Program{Source: v.file, Text: v.text, Compiler: v.compiler, Flags: v.flags})
	return exe, open(t, exe)
}

func open(t testing.TB, exe string) *Info {
	t.Helper()
	file, err := object.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	finder := &object.Finder{}
	debug, err := finder.Debug(file)
	if err != nil || debug == nil {
		t.Fatalf("no debug information: %v", err)
	}
	info, err := Open(debug, finder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range info.Problems() {
			t.Error("problem:", p)
		}
		info.Close()
	})
	return info
}

func symbol(t testing.TB, info *Info, name string) object.Symbol {
	t.Helper()
	s, ok := info.main.file.SymbolNamed(name)
	if !ok {
		t.Fatalf("no symbol %s", name)
	}
	return s
}
