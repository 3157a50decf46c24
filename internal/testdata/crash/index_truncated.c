// An index that lost its upper half and was multiplied: far outside the array.
int rows[100];
static volatile long wanted = 40001;

__attribute__((noinline, noipa)) static int at(long number)
{
    short low = (short)number;
    int row = low * -4000;
    // WANT: unmapped-address read:@LINE+1
    return rows[row];
}

int main(void)
{
#ifdef FIXED
    wanted = 0;
#endif
    return at(wanted);
}
