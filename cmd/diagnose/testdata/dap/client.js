// client.js ADAPTER SOURCE drives a debug adapter, which has opened the recording of total.c, with the client of
// VS Code's own tests of adapters.
const assert = require('assert');
const { DebugClient } = require('@vscode/debugadapter-testsupport');

const [adapter, source] = process.argv.slice(2);
const add = 11, failure = 35;

async function main() {
	const client = new DebugClient('/bin/sh', adapter, 'diagnose', {}, true);
	client.defaultTimeout = 60000;
	await client.start();
	let seq = 0;
	client.on('continued', () => seq++);

	// The recording opens at the failure, with the breakpoint that the editor has.
	const opened = client.waitForEvent('stopped');
	await Promise.all([
		client.waitForEvent('initialized')
			.then(() => client.setBreakpointsRequest({ source: { path: source }, lines: [add], breakpoints: [{ line: add }] }))
			.then(r => assert.ok(r.body.breakpoints[0].verified))
			.then(() => client.setExceptionBreakpointsRequest({ filters: [] }))
			.then(() => client.configurationDoneRequest()),
		client.launch({}),
	]);
	const stop = (await opened).body;
	assert.equal(stop.reason, 'exception');
	assert.match(stop.text, /^SIGSEGV/);
	const threadId = stop.threadId;
	const stack = await client.stackTraceRequest({ threadId });
	assert.equal(stack.body.stackFrames[0].line, failure);
	assert.equal(stack.body.stackFrames[0].source.path, source);
	const after = await client.stackTraceRequest({ threadId, startFrame: 1, levels: 19 });
	assert.deepEqual(after.body.stackFrames, []);

	// The cause is the exception's text, and its steps are frames.
	const info = await client.exceptionInfoRequest({ threadId });
	assert.equal(info.body.exceptionId, 'SIGSEGV');
	assert.match(info.body.description, /where/);
	const threads = (await client.threadsRequest()).body.threads;
	const causes = threads.find(t => t.name === 'causes');
	const steps = (await client.stackTraceRequest({ threadId: causes.id, startFrame: 0, levels: 20 })).body.stackFrames;
	assert.ok(steps.some(f => f.source && f.source.path.endsWith('total.c') && f.line === 34), JSON.stringify(steps));

	// Backwards to the breakpoint; what is there.
	const move = (request, reason, line) =>
		Promise.all([client.assertStoppedLocation(reason, line ? { path: source, line } : {}), request]).then(r => r[0].body.stackFrames);
	let frames = await move(client.reverseContinueRequest({ threadId }), 'breakpoint', add);
	const scopes = await client.scopesRequest({ frameId: frames[0].id });
	const variables = (await client.variablesRequest({ variablesReference: scopes.body.scopes[0].variablesReference })).body.variables;
	assert.equal(variables.find(v => v.name === 'a').value, '15');
	const hover = await client.evaluateRequest({ expression: 'total', frameId: frames[1].id, context: 'hover' });
	assert.equal(hover.body.result, '15');
	await assert.rejects(client.evaluateRequest({ expression: 'nothing_of_this_name', frameId: frames[0].id, context: 'watch' }));

	// One step each way.
	await move(client.stepOutRequest({ threadId }), 'step');
	frames = await move(client.stepBackRequest({ threadId }), 'breakpoint', add);

	// A watchpoint of the editor, backwards.
	await client.setBreakpointsRequest({ source: { path: source }, lines: [], breakpoints: [] });
	if (process.env.WATCHES) {
		const memory = (await client.dataBreakpointInfoRequest({ name: 'total', frameId: frames[0].id })).body;
		const set = await client.setDataBreakpointsRequest({ breakpoints: [{ dataId: memory.dataId, accessType: 'write' }] });
		assert.ok(set.body.breakpoints[0].verified, JSON.stringify(set.body));
		await move(client.reverseContinueRequest({ threadId }), 'data breakpoint', 33);
		await client.setDataBreakpointsRequest({ breakpoints: [] });
	}

	// The console's commands move, too; the editor is told that the program runs.
	assert.equal(seq, 0);
	const there = client.waitForEvent('stopped');
	await client.evaluateRequest({ expression: 'goto end', context: 'repl' });
	const end = (await there).body;
	assert.equal(end.reason, 'exception', JSON.stringify(end));
	assert.equal(seq, 1);
	await move(client.stepBackRequest({ threadId }), 'step', failure);
	await client.disconnectRequest({});
	client.stopAdapter();
	console.log('all steps are done');
}

main().catch(e => {
	console.error(e);
	process.exit(1);
});
