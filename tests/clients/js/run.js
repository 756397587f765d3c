// node run.js SUITE SCENARIO CONTEXT: plays one scenario; without a scenario it lists them.
const [suite, scenario, context] = process.argv.slice(2);
const scenarios = await import(`./${suite}.js`);

if (scenario === undefined) {
    console.log(Object.keys(scenarios).join("\n"));
} else {
    process.on("unhandledRejection", (reason) => {
        console.error("nobody handled", reason);
        process.exitCode = 1;
    });
    try {
        await scenarios[scenario](JSON.parse(context));
    } catch (error) {
        console.error(error);
        process.exit(1);
    }
    // Whoever said goodbye must be let go: no request may be left hanging, no socket open.
    setTimeout(() => {
        console.error("still open after the end:", process.getActiveResourcesInfo().join(", "));
        process.exit(1);
    }, 3000).unref();
}
