// A stripped library calls back into the program.
// LIBRARY: callback.c
struct event {
    int kind;
    const int *data;
};
int each_event(int n, int (*visit)(struct event *, void *), void *arg);

static int one = 1;

static int on_event(struct event *e, void *arg)
{
#ifdef FIXED
    e->data = &one;
#endif
    // WANT: null-pointer read:@LINE+1
    return *e->data + *(int *)arg;
}

int main(void)
{
    int base = 1;
    return each_event(3, on_event, &base) != 6;
}
