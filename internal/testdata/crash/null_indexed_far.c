// An element at a large offset from a null pointer, where nothing looks like null.
struct row {
    char *cells;
    unsigned long used;
};

static char cells[(1 << 20) + 1];
struct row row = {.used = 1 << 20};

__attribute__((noinline, noipa)) static int last(struct row *r)
{
    // WANT: null-pointer read:@LINE+1
    return r->cells[r->used];
}

int main(void)
{
#ifdef FIXED
    row.cells = cells;
#endif
    return last(&row);
}
