// The context of a callback comes in as void *, and has a null array in it.
struct context {
    int *counts;
    int size;
};

static int real[5];

__attribute__((noinline, noipa)) static void add(void *argument, int which)
{
    struct context *context = argument;
    // WANT: null-pointer read:@LINE+1
    context->counts[which]++;
}

__attribute__((noinline, noipa)) static void each(void (*callback)(void *, int), void *argument)
{
    for (int i = 0; i < 5; i++)
        callback(argument, i);
}

int main(void)
{
    struct context context = {0, 5};
#ifdef FIXED
    context.counts = real;
#endif
    each(add, &context);
    return real[4] != (context.counts != 0);
}
