/* The parts of the page of hone tune. */
drawPage([overview, waterfall, predictions, points, sizes, roadmap, dropped, tunedConfig]);
