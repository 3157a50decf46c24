// Three functions that call each other in a circle.
#ifdef FIXED
#define DEPTH 10
#else
#define DEPTH 100000000
#endif

static volatile int visits;
static int visit_list(int n);
static int visit_item(int n);
static int visit_tree(int n);

// WANT: stack-overflow write:@LINE+1..+22
__attribute__((noinline, noipa)) static int visit_tree(int n)
{
    volatile char room[512];
    room[0] = (char)n;
    visits++;
    return n < DEPTH ? visit_list(n + 1) + room[0] : 0;
}

__attribute__((noinline, noipa)) static int visit_list(int n)
{
    volatile char room[128];
    room[0] = (char)n;
    return visit_item(n + 1) + room[0];
}

__attribute__((noinline, noipa)) static int visit_item(int n)
{
    volatile char room[4000];
    room[0] = (char)n;
    return visit_tree(n + 1) + room[0];
}

int main(void)
{
    visit_tree(0);
    return 0;
}
