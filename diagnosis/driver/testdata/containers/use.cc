// Each function uses an element that a container does not have. With "good" it uses one that is there, with the
// same objects around, and fails by a null pointer of its own.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

struct part {
	const char *name;
	long weight;
	bool operator<(const part &o) const { return weight < o.weight; }
};

static volatile int *nothing;
static bool good;
static int sink;

#define CASE extern "C" __attribute__((noinline)) int

// fail is the failure of the fixed twins.
static inline int fail()
{
	if (good)
		*nothing = 1;
	return sink;
}

struct sheet {
	int width;
	std::vector<int> cells;
	const char *title;
};

CASE vector_index(const sheet &s, int row, int column)
{
	int at = row * s.width + column;
	sink = s.cells[at];
	return fail();
}

static std::vector<double> samples(3000);

CASE vector_write(size_t position, double value)
{
	samples[position] = value;
	return fail();
}

CASE vector_front(std::vector<part> &line, std::vector<part> &other)
{
	sink = good ? other.front().weight : line.front().weight;
	return fail();
}

CASE string_index(const std::string &text, size_t offset)
{
	sink = text[offset];
	return fail();
}

CASE wide_index(const std::wstring &text, size_t offset)
{
	sink = text[offset];
	return fail();
}

CASE list_front(std::list<part> &line, std::list<part> &other)
{
	sink = good ? other.front().name[0] : line.front().name[0];
	return fail();
}

CASE list_end(std::list<part> &line)
{
	std::list<part>::iterator it = line.end();
	if (good)
		--it;
	sink = it->name[0];
	return fail();
}

CASE set_end(const std::set<part> &parts)
{
	std::set<part>::const_iterator found = parts.find(part{"", good ? 2 : 200});
	sink = found->name[0];
	return fail();
}

CASE map_end(std::map<long, part *> &parts, long key)
{
	std::map<long, part *>::iterator entry = parts.find(key);
	sink = entry->second->name[0];
	return fail();
}

CASE hash_end(std::unordered_map<std::string, part> &parts, const std::string &key)
{
	auto entry = parts.find(key);
	sink = entry->second.name[0];
	return fail();
}

CASE hash_set_end(const std::unordered_set<long> &numbers, long key)
{
	auto entry = numbers.find(key);
	sink = *entry;
	return fail();
}

CASE deque_end(std::deque<part> &line)
{
	std::deque<part>::iterator it = line.end();
	if (good)
		--it;
	sink = it->name[0];
	return fail();
}

// vector_stale has an iterator to the memory of before the vector grew.
CASE vector_stale(std::vector<part> &parts, int more)
{
	std::vector<part>::iterator first = parts.begin();
	for (int i = 0; i < more; i++)
		parts.push_back(part{"more", i});
	if (good)
		first = parts.begin();
	sink = first->name[0];
	return fail();
}

CASE list_stale(std::list<part> &line)
{
	std::list<part>::iterator second = ++line.begin();
	line.erase(good ? line.begin() : second);
	sink = second->name[0];
	return fail();
}

CASE map_stale(std::map<long, part *> &parts, long key)
{
	std::map<long, part *>::iterator entry = parts.find(2);
	parts.erase(key);
	sink = entry->second->name[0];
	return fail();
}

CASE hash_stale(std::unordered_map<std::string, part> &parts, std::string key)
{
	std::unordered_map<std::string, part>::iterator entry = parts.find("b");
	parts.erase(key);
	sink = entry->second.name[0];
	return fail();
}

CASE set_stale(std::set<part> &parts)
{
	std::set<part>::iterator entry = parts.begin();
	if (!good)
		parts.clear();
	sink = entry->name[0];
	return fail();
}

// vector_at fails by an exception of the library.
CASE vector_at(const std::vector<part> &parts, size_t which)
{
	if (good)
		return fail();
	sink = parts.at(which).weight;
	return sink;
}

// walked goes to the end, and then fails by a pointer that is not the iterator's, and null as what is past the end.
CASE walked(std::map<long, part *> &parts, std::list<part> &line, const part *chosen)
{
	auto it = parts.begin();
	while (it != parts.end())
		++it;
	auto last = line.end();
	sink = chosen->name[0];
	return it == parts.end() && last == line.end();
}

// beside begins with a list, and its other members are read.
struct beside {
	std::list<part> line;
	const char *title;
	const char *subtitle;
};

CASE member_after(beside &b)
{
	sink = b.subtitle[0];
	return fail();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	good = argc > 2 && !strcmp(argv[2], "good");
	// What is past the end of the containers is no pointer.
	static struct { std::vector<part> few; const char *after[6]; } vectors;
	static struct { std::list<part> line; char *after[6]; } lists;
	static struct { std::map<long, part *> parts; char *after[6]; } maps;
	static struct { std::set<part> parts; char *after[6]; } sets;
	static struct { std::deque<part> line; char *after[6]; } deques;
	static std::unordered_map<std::string, part> hash;
	static std::unordered_set<long> numbers;
	static sheet s;
	static beside b;
	static std::vector<part> none;
	static std::list<part> empty;
	s.width = 100, s.title = "sheet", s.cells.resize(5000);
	for (int i = 0; i < 5; i++) {
		part p = {"part", i};
		vectors.few.push_back(p), lists.line.push_back(p), maps.parts[i] = new part(p), sets.parts.insert(p);
		deques.line.push_back(p), hash[std::string(1, 'a' + i)] = p, numbers.insert(i);
	}
	vectors.few.shrink_to_fit();
	std::string text("some text that is longer than the buffer of short strings");
	std::wstring wide(L"wide");
	std::string key(good ? "b" : "z");
	if (!strcmp(what, "vector_index"))
		return vector_index(s, good ? 7 : 9000000, 3);
	if (!strcmp(what, "vector_write"))
		vector_write(good ? 7 : 90000000, 1.5);
	if (!strcmp(what, "vector_front"))
		vector_front(none, vectors.few);
	if (!strcmp(what, "string_index"))
		string_index(text, good ? 7 : 80000000);
	if (!strcmp(what, "wide_index"))
		wide_index(wide, good ? 2 : 80000000);
	if (!strcmp(what, "list_front"))
		list_front(empty, lists.line);
	if (!strcmp(what, "list_end"))
		list_end(lists.line);
	if (!strcmp(what, "set_end"))
		set_end(sets.parts);
	if (!strcmp(what, "map_end"))
		map_end(maps.parts, good ? 2 : 200);
	if (!strcmp(what, "hash_end"))
		hash_end(hash, key);
	if (!strcmp(what, "hash_set_end"))
		hash_set_end(numbers, good ? 2 : 200);
	if (!strcmp(what, "deque_end"))
		deque_end(deques.line);
	if (!strcmp(what, "vector_stale"))
		vector_stale(vectors.few, 4);
	if (!strcmp(what, "list_stale"))
		list_stale(lists.line);
	if (!strcmp(what, "map_stale"))
		map_stale(maps.parts, good ? 3 : 2);
	if (!strcmp(what, "hash_stale"))
		hash_stale(hash, good ? "c" : "b");
	if (!strcmp(what, "set_stale"))
		set_stale(sets.parts);
	if (!strcmp(what, "vector_at"))
		vector_at(vectors.few, 12);
	if (!strcmp(what, "walked"))
		walked(maps.parts, empty, nullptr);
	if (!strcmp(what, "member_after"))
		member_after(b);
	return 0;
}
