/* The parts of a profile's page. */
drawPage([overview, findings, roadmap, split, ranks, operations, roofline, memory, layers, timeline, machine]);
