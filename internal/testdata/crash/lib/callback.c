// A library that is shipped stripped: static helpers without symbols.
struct event {
    int kind;
    const int *data;
};
typedef int (*visitor)(struct event *, void *);

__attribute__((noinline, noipa)) static int one(struct event *e, visitor visit, void *arg, int n)
{
    char room[100];
    room[n] = (char)n;
    __asm__ volatile("" : : "r"(room) : "memory", "rbx", "r12");
    e->kind = n;
    return visit(e, arg) + room[n] - n;
}

int each_event(int n, visitor visit, void *arg)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        struct event e = {0, 0};
        sum += one(&e, visit, arg, i);
    }
    return sum;
}
