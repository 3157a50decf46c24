// A string literal is changed in place.
static char *volatile title;
static char copy[] = "title";

__attribute__((noinline, noipa)) static void capitalise(char *s)
{
    // WANT: write-to-read-only write:@LINE+1
    s[0] -= 32;
}

int main(void)
{
#ifdef FIXED
    title = copy;
#else
    title = (char *)"title";
#endif
    capitalise(title);
    return copy[0] == 0;
}
