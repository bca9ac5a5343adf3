/* The parts of an imported trace's page. */
drawPage([overview, findings, roadmap, split, gpu, corrected, watched, tried, baseline, timeline, kernels, hostOps, rooflineOps, modules, pythonFrames, communication, launches, memory,
          ranks, aboutTrace]);
