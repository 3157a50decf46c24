// A counter is written through a pointer that was never set.
static int *volatile counter;
static int cell;

__attribute__((noinline, noipa)) static void count(int by)
{
    // WANT: null-pointer write:@LINE+1
    *counter = by;
}

int main(void)
{
#ifdef FIXED
    counter = &cell;
#endif
    count(3);
    return cell != 0 && cell != 3;
}
