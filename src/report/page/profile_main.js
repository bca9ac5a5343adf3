/* The parts of a profile's page. */
drawPage([overview, split, operations, roofline, memory, layers, timeline, findings, machine]);
