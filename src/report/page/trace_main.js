/* The parts of an imported trace's page. */
drawPage([overview, split, gpu, corrected, watched, tried, findings, roadmap, baseline, timeline, kernels, hostOps, rooflineOps, modules, pythonFrames, communication, launches, memory,
          ranks, aboutTrace]);
