// An element of an array at a null pointer: the index is good.
struct row {
    char *cells;
    unsigned long used;
};

static char cells[8];
static struct row row = {.used = 5};

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
