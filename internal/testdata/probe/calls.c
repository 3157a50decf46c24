/* Ways in which calls hand over arguments, return and do not return. Each function is called ROUNDS
   times with values that follow from the round. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 };

struct big { long a, b, c; };
struct small { int a; double b; };

volatile long sink;
static jmp_buf back;

__attribute__((noinline)) long many(char a, short b, int c, long d, unsigned e, const char *f, int g, double h, float i, long j)
{
    sink = a + b + c + d + e + f[0] + g + (long)h + (long)i + j;
    return sink;
}

__attribute__((noinline)) double doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, int j)
{
    sink = (long)(a + b + c + d + e + f + g + h + i) + j;
    return i + j;
}

__attribute__((noinline)) int after(int first, struct big value, int last)
{
    sink = value.a + value.c;
    return first + last;
}

__attribute__((noinline)) struct big make(int n, int more)
{
    struct big x = {n, n + more, n * 10};
    sink = n;
    return x;
}

__attribute__((noinline)) struct small pair(int n)
{
    struct small x = {n, n / 2.0};
    sink = n;
    return x;
}

__attribute__((noinline)) int inner(int x)
{
    sink = x;
    return x * 2;
}

__attribute__((noinline)) int outer(int x)
{
    sink = x + 7;
    return inner(x + 1);
}

__attribute__((noinline)) long factorial(long n)
{
    sink = n;
    if (n < 2)
        return 1;
    long rest = factorial(n - 1);
    sink = rest;
    return n * rest;
}

__attribute__((noinline)) int jumps(int n)
{
    sink = n;
    if (n % 2)
        longjmp(back, n);
    return n + 100;
}

__attribute__((noinline)) bool odd(unsigned char n)
{
    sink = n;
    return n & 1;
}

__attribute__((noinline)) const char *named(int n)
{
    sink = n;
    return n % 2 ? "odd" : "even";
}

__attribute__((noinline)) void nothing(int n) { sink = n; }

int main(void)
{
    long total = 0;
    for (int n = 0; n < ROUNDS; n++) {
        total += many(n - 2, -n, n * 3, n - 1000000000000L, 4000000000u + n, n % 2 ? "x" : "yy", n - 1, n + 0.5, n / 4.0f, -n);
        total += (long)doubles(1, 2, 3, 4, 5, 6, 7, n + 0.25, n - 0.5, n);
        total += after(n, (struct big){n, 2, 3}, n + 9);
        total += make(n, 4).c + pair(n).a + outer(n) + factorial(n + 2) + odd(n) + named(n)[0];
        if (!setjmp(back))
            total += jumps(n);
        nothing(n);
    }
    sink = total;
    abort();
}
