/* The parts of a profile's page. */
drawPage([overview, split, ranks, operations, roofline, memory, layers, timeline, findings, machine]);
