// An exception that nobody catches.
#include <stdexcept>
#include <string>

__attribute__((noinline, noipa)) static int parse(const std::string &text)
{
    if (text.empty())
        // WANT: cxx-terminate:@LINE+1
        throw std::runtime_error("cannot parse an empty string");
    return text[0];
}

int main()
{
#ifdef FIXED
    std::string text = "x";
#else
    std::string text;
#endif
    return parse(text) != 'x';
}
