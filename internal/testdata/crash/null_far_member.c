// A member at a large offset from a null pointer to a struct.
struct big {
    char pad[9000];
    int tail;
};

static struct big *volatile table;
static struct big real;

__attribute__((noinline, noipa)) static int tail_of(struct big *b)
{
    // WANT: null-pointer read:@LINE+1
    return b->tail;
}

int main(void)
{
#ifdef FIXED
    table = &real;
#endif
    return tail_of(table);
}
