// Objects of the right class, in many shapes; each crash is another one.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
struct A { virtual ~A() {} virtual int f() { return 1; } int *p = nullptr; };
struct B { virtual ~B() {} virtual int g() { return 2; } int *q = nullptr; };
struct C : A, B { int f() override { return *q; } int g() override { return *p; } int *r = nullptr; };
struct V : virtual A { int f() override { return *p; } int *v = nullptr; virtual int h() { return *v; } };
struct W : virtual A { virtual int k() { return *p; } int *w = nullptr; };
struct X : V, W { int k() override { return *w; } int h() override { return *v; } };
template <class T> struct Box : A { T *t = nullptr; virtual T get() { return *t; } };
namespace { struct Hidden : B { int g() override { return *q; } int *hidden = nullptr; }; }
struct Ctor : A { Ctor(int *x) { p = x; use(this); } static int use(Ctor *c) { return *c->p; } int *own = nullptr; };
struct Dtor : A { ~Dtor() override { last(this); } static int last(A *a) { return *a->p; } };
struct BaseInit : A { int n; static int look(BaseInit *b) { return *b->mine; } BaseInit() : n(0), mine(nullptr), m2(look(this)) {} int *mine; int m2; };
__attribute__((noinline)) static int useA(A *a) { return *a->p; }
__attribute__((noinline)) static int useB(B *b) { return *b->q; }
__attribute__((noinline)) static int useC(C *c) { return *c->r; }
__attribute__((noinline)) static int useV(V *v) { return *v->v; }
__attribute__((noinline)) static int useW(W *w) { return *w->w; }
__attribute__((noinline)) static int useBox(Box<unsigned long> *b) { return *b->t; }
__attribute__((noinline)) static int useHidden(Hidden *h) { return *h->hidden; }
int main(int argc, char **argv)
{
    struct Local : A { int *l = nullptr; virtual int m() { return *l; } };
    switch (argc > 1 ? atoi(argv[1]) : 0) {
    case 0: return useA(new C);
    case 1: return useB(new C);
    case 2: return useC(new C);
    case 3: return useV(new X);
    case 4: return useW(new X);
    case 5: return useBox(new Box<unsigned long>);
    case 6: return useHidden(new Hidden);
    case 7: return Ctor(nullptr).f();
    case 8: { Dtor d; } return 0;
    case 9: return BaseInit().n;
    case 10: { B *b = new C; return b->g(); }
    case 11: { A *a = new X; return a->f(); }
    case 12: { Local *l = new Local; return l->m(); }
    case 13: { W *w = new X; return w->k(); }
    }
    return 0;
}
