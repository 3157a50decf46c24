// A member of a struct at a small number that was taken for a pointer.
struct big {
    char pad[40];
    int tail;
};

static struct big *volatile table = (struct big *)16;
static struct big real;

__attribute__((noinline, noipa)) static int tail_of(struct big *b)
{
    // WANT: near-null-pointer read:@LINE+1
    return b->tail;
}

int main(void)
{
#ifdef FIXED
    table = &real;
#endif
    return tail_of(table);
}
