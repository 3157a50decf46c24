// A function pointer into the void.
static int (*volatile handler)(int);

static int identity(int n) { return n; }

__attribute__((noinline, noipa)) static int dispatch(int event)
{
    // WANT: wild-pointer execute:@LINE+1
    return handler(event) + 1;
}

int main(void)
{
#ifdef FIXED
    handler = identity;
#else
    handler = (int (*)(int))0x234567890000;
#endif
    return dispatch(4) != 5;
}
