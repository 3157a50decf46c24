// A handler that was never registered is called.
static int (*volatile handler)(int);

static int identity(int n) { return n; }

__attribute__((noinline, noipa)) static int dispatch(int event)
{
    // WANT: null-pointer execute:@LINE+1
    return handler(event) + 1;
}

int main(void)
{
#ifdef FIXED
    handler = identity;
#endif
    return dispatch(4) != 5;
}
