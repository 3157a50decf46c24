// Documents parsed into trees of nodes, changed, written out and thrown away
// as a whole: the pattern of JSON and XML libraries.
#include "bench.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Node {
	std::string text;
	std::vector<std::pair<std::string, std::unique_ptr<Node>>> members;
};

void write(const Node &n, std::string &out)
{
	if (n.members.empty()) {
		out += '"' + n.text + '"';
		return;
	}
	out += '{';
	for (const auto &m : n.members) {
		out += m.first + ':';
		write(*m.second, out);
		out += ',';
	}
	out += '}';
}

std::unique_ptr<Node> parse(const char *&at)
{
	auto node = std::make_unique<Node>();
	if (*at == '"') {
		const char *end = strchr(at + 1, '"');
		node->text.assign(at + 1, end);
		at = end + 1;
		return node;
	}
	for (at++; *at != '}'; at++) {
		const char *colon = strchr(at, ':');
		std::string name(at, colon);
		at = colon + 1;
		node->members.emplace_back(std::move(name), parse(at));
	}
	at++;
	return node;
}

std::unique_ptr<Node> make(worker *w, unsigned depth)
{
	auto node = std::make_unique<Node>();
	if (depth == 0) {
		node->text.assign(4 + bench_random(w) % 60, static_cast<char>('a' + bench_random(w) % 26));
		return node;
	}
	for (uint64_t n = 3 + bench_random(w) % 5; n > 0; n--)
		node->members.emplace_back("member" + std::to_string(n * n * 12345), make(w, depth - 1));
	return node;
}

void *body(void *arg)
{
	auto *w = static_cast<worker *>(arg);
	std::string text;
	write(*make(w, 4), text);
	for (uint64_t i = 0; i < w->work; i++) {
		const char *at = text.c_str();
		auto root = parse(at);
		auto &branch = root->members[bench_random(w) % root->members.size()].second;
		branch = make(w, 3);
		text.clear();
		write(*root, text);
		bench_add(w, text.size() + static_cast<unsigned char>(text[text.size() / 2]));
	}
	return nullptr;
}

} // namespace

int main(int argc, char **argv)
{
	return bench_main(argc, argv, body, 8000);
}
