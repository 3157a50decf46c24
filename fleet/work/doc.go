// Package work spreads the analyses of a night over the hosts of a fleet.
//
// A Coordinator puts one job for each failure into a work queue of JetStream; a Worker takes the
// jobs that its host can do, analyses the failure as a night does, and hands the result back.
// The queue, its claims and its redeliveries are JetStream's. The team's parts, of NATS:
//
//	stream  jobs      one message a job, until it is acknowledged; one a subject at most
//	bucket  classes   the needs of jobs, by class; each class has a consumer of the stream
//	bucket  results   the first result of a job, by its id: a second one is refused
//	bucket  tries     who began a job, and how that ended
//	bucket  workers   which workers live, and what their hosts can do
//
// A worker stores the result before it acknowledges the job. So a job whose worker is killed
// comes again, and one that is done twice has one result. A job that three tries did not finish
// is set aside: its result is a list of these tries.
//
// All that is read from the engine is checked: whoever may write there could have made it.
package work
