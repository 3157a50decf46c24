// A loop that does not know the size of its buffer.
// FLAGS: -fstack-protector-all -U_FORTIFY_SOURCE
#ifdef FIXED
static volatile int length = 16;
#else
static volatile int length = 40;
#endif

static const char input[64] = "AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDDEEEEEEEEFFFFFFFF";

__attribute__((noinline, noipa)) static int copy_name(int n)
{
    char name[16];
    char *volatile to = name;
    for (volatile int i = 0; i < n; i++)
        to[i] = input[i];
    // WANT: stack-smashing:@LINE+1..+2
    return name[3];
}

int main(void)
{
    return copy_name(length) != 'A';
}
