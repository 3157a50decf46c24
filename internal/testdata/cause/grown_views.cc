// Words of a line as views in a vector: the first one is kept by reference while
// the rest is found, and the vector grows meanwhile.
// CAUSE kind=use-after-free
// FAILS signal=SIGSEGV says="no address"
// RUNS fail: add one two three four five six
// RUNS pass: add one two three
// FLAGS: -std=c++17
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

class command {
public:
	explicit command(const std::string &line) : text(line)
	{
		words.reserve(4);
	}

	long run()
	{
		std::size_t at = next(0);
		const std::string_view &name = words.front();

		while (at < text.size())
			at = next(at);
#ifdef FIXED
		const std::string_view &verb = words.front();
#else
		const std::string_view &verb = name;
#endif
		return verb[0] == 'a' ? add() : -1; // BUG 2
	}

private:
	std::size_t next(std::size_t at)
	{
		std::size_t end = text.find(' ', at);

		if (end == std::string::npos)
			end = text.size();
		words.push_back(std::string_view(text).substr(at, end - at)); // BUG 1
		return end + 1;
	}

	long add() const
	{
		return static_cast<long>(words.size()) - 1;
	}

	std::string text;
	std::vector<std::string_view> words;
};

int main(int argc, char **argv)
{
	std::string line;

	for (int i = 1; i < argc; i++)
		line += (i > 1 ? " " : "") + std::string(argv[i]);
	command c(line);
	std::printf("%ld\n", c.run());
	return 0;
}
