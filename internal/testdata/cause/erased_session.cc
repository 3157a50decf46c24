// Sessions in a map: those that are over are erased on a walk, which then asks the
// erased one which comes next.
// CAUSE kind=use-after-free
// FAILS signal=SIGSEGV says="no address"
// RUNS fail: 30
// RUNS pass: 5
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

struct session {
	std::string user;
	int last_seen;
};

class server {
public:
	void open(int number, const char *user, int now)
	{
		sessions[number] = session{user, now}; // OBJECT
	}

	void expire(int before)
	{
		for (auto it = sessions.begin(); it != sessions.end();) {
			if (it->second.last_seen >= before) {
				++it;
				continue;
			}
#ifdef FIXED
			it = sessions.erase(it);
#else
			sessions.erase(it); // BUG 1
			++it; // BUG 2
#endif
		}
	}

	std::size_t count() const
	{
		return sessions.size();
	}

private:
	std::map<int, session> sessions;
};

int main(int argc, char **argv)
{
	server s;
	int before = argc > 1 ? atoi(argv[1]) : 5;

	for (int i = 0; i < 6; i++)
		s.open(100 + i, i % 2 ? "somebody with a long name" : "root", 10 + 8 * i);
	s.expire(before);
	std::printf("%zu sessions\n", s.count());
	return s.count() == 0;
}
