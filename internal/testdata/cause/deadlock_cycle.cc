// Three parts of a game, each with a lock, that tell each other what happened: the
// world the sounds, the sounds the screen, the screen the world.
// CAUSE kind=deadlock variable=world_lock,sound_lock,screen_lock|world_lock,sound_lock|world_lock,screen_lock|sound_lock,screen_lock pattern="lock order"
// FAILS signal=SIGABRT says="the game hangs"
// RUNS fail: 5 10 15
// RUNS pass: 5 70 130
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

static std::mutex world_lock, sound_lock, screen_lock;
static std::vector<std::string> sounds, lines, events;
static std::atomic<int> finished;

static void rest(int milliseconds)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

static void play(const std::string &sound)
{
	std::lock_guard<std::mutex> hold(sound_lock); // BUG 1
	sounds.push_back(sound);
}

static void show(const std::string &line)
{
	std::lock_guard<std::mutex> hold(screen_lock); // BUG 2
	lines.push_back(line);
}

static void happen(const std::string &event)
{
	std::lock_guard<std::mutex> hold(world_lock); // BUG 3
	events.push_back(event);
}

static void move_world(int at)
{
	rest(at);
	std::unique_lock<std::mutex> hold(world_lock);
	events.push_back("step");
	rest(40);
	play("tock");
	finished++;
}

static void mix_sounds(int at)
{
	rest(at);
	std::unique_lock<std::mutex> hold(sound_lock);
	sounds.push_back("wind");
	rest(40);
	show("wind blows");
	finished++;
}

static void refresh(int at)
{
	rest(at);
	std::unique_lock<std::mutex> hold(screen_lock);
	lines.push_back("score");
	rest(40);
#ifdef FIXED
	hold.unlock();
#endif
	happen("seen");
	finished++;
}

int main(int argc, char **argv)
{
	int at[3] = {5, 70, 130};
	for (int i = 1; i < argc && i <= 3; i++)
		at[i - 1] = std::atoi(argv[i]);
	std::thread threads[] = {std::thread(move_world, at[0]), std::thread(mix_sounds, at[1]), std::thread(refresh, at[2])};
	rest(600);
	if (finished != 3) {
		std::fprintf(stderr, "the game hangs\n");
		std::abort();
	}
	for (std::thread &t : threads)
		t.join();
	return events.size() + sounds.size() + lines.size() != 6;
}
