// A recursive template ends at a null pointer.
template <int N, typename T> struct Walker {
    __attribute__((noinline, noipa)) static T walk(const T *p) { return Walker<N - 1, T>::walk(p) + N; }
};
template <typename T> struct Walker<0, T> {
    __attribute__((noinline, noipa)) static T walk(const T *p)
    {
        // WANT: null-pointer read:@LINE-2..+1
        return *p;
    }
};

namespace {
const long *volatile source;
const long real = 1;
} // namespace

int main()
{
#ifdef FIXED
    source = &real;
#endif
    return Walker<5, long>::walk(source) != 16;
}
