/* The parts of an imported trace's page. */
drawPage([overview, split, gpu, corrected, findings, roadmap, timeline, kernels, hostOps, communication, launches, memory,
          ranks, aboutTrace]);
