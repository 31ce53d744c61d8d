// JSON, an expression, and two worker threads.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (isMainThread) {
    const list = [];
    for (let i = 0; i < 5000; i++) list.push({ a: i, b: 'x' + i, c: [i, i * 2] });
    const text = JSON.stringify(list);
    console.log(text.length, JSON.parse(text).length, text.match(/"b":"x(\d+)7"/g).length);
    let answers = 0, total = 0;
    for (let i = 0; i < 2; i++) {
        const worker = new Worker(__filename, { workerData: i });
        worker.on('message', (sum) => {
            total += sum;
            if (++answers == 2) console.log(total);
        });
    }
} else {
    let sum = 0;
    for (let i = 0; i < 1e6; i++) sum += i % (workerData + 2);
    parentPort.postMessage(sum);
}
