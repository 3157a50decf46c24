// A name that does not fit, caught by the fortified strcpy.
// FLAGS: -D_FORTIFY_SOURCE=2
// VARIANTS: O2 O2-nofp O2-fp-nopie
#include <string.h>

#ifdef FIXED
static const char *volatile name = "short";
#else
static const char *volatile name = "a name that is longer than sixteen";
#endif

struct record {
    char name[16];
    int used;
};
static struct record record;

__attribute__((noinline, noipa)) static void fill(struct record *r, const char *s)
{
    r->used = 1;
    __asm__ volatile("" ::: "memory");
    // WANT: fortify-failure:@LINE+1
    strcpy(record.name, s);
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    fill(&record, name);
    return record.used != 1;
}
