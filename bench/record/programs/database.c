/* database FILE ROWS: threads write to an SQLite database and read from it, over one
 * connection, whose mutex they share. (With a connection each they would wait for
 * the file by sleeping, most of the time.) */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

static const char *path;
static int rows;
static sqlite3 *db;

static void run(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return;
	fprintf(stderr, "database: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void *work(void *argument)
{
	char sql[200];

	for (int i = 0; i < rows; i++) {
		snprintf(sql, sizeof(sql), "insert into t values (%ld, %d, randomblob(100), hex(randomblob(20)))", (long)argument, i);
		run(i % 50 ? sql : "select a, count(*), max(d) from t group by a order by 3");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc != 3)
		return 2;
	path = argv[1];
	rows = atoi(argv[2]);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL) != SQLITE_OK)
		return 1;
	run("pragma journal_mode=wal; pragma synchronous=off; create table t (a, b, c, d); create index i on t (d)");
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	run("pragma integrity_check");
	return 0;
}
